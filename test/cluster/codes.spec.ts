import { describe, expect, it } from 'vitest';
import { RACE_START_MS, race } from '../../packages/conformance-kit/src/race.js';
import { roundsOf } from '../nightly.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { figure, LongestWait } from '../support/measurements.js';
import { times, winnerOf } from '../support/races.js';
import { moveOf, rememberingRegistry } from '../support/remember.js';
import { ACME_ORIGIN } from '../support/test-registry.js';
import { infoStatus, newCustomer, redeemBody, transferToken } from '../support/transfers.js';
import { conflictsOf, useCluster } from './cluster.js';

const TRANSFER_CODE_COUNT = roundsOf({ byDay: 120, nightly: 1_000 });
const REQUESTS_PER_CODE = 6;
const CONCURRENT_CODE_COUNT = 20;
/** Codes with remember. */
const CODE_COUNT = roundsOf({ byDay: 10, nightly: 50 });
const REQUESTS_PER_RACE = 20;
/** A second use that is handled later than this after the first one is a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

const cluster = useCluster('codes', rememberingRegistry);

/** The number of rows, read from the third node. */
async function countOf(rows: string): Promise<number> {
  const [row] = (await cluster.pods[2].node.query(`SELECT COUNT(*) AS count FROM codes.${rows}`)) as [
    { count: number },
  ];
  return Number(row.count);
}

/** The browser that created the customer, and the one that the transfer gives. */
const BROWSER_COUNT = 2;

describe('protocol §3.6, on three nodes', () => {
  it(`each of ${TRANSFER_CODE_COUNT} transfer tokens, raced by ${REQUESTS_PER_CODE} requests on all nodes, gives a token`, async () => {
    const { pods } = cluster;
    const before = await conflictsOf(pods);
    const longest = new LongestWait();
    let winners = 0;
    for (let done = 0; done < TRANSFER_CODE_COUNT; done += CONCURRENT_CODE_COUNT) {
      await times(CONCURRENT_CODE_COUNT, async (index) => {
        const pod = pods[index % 3] ?? pods[0];
        const code = await transferToken(pod, (await newCustomer(pod)).access_token);
        const responses = await longest.of(race(pods, TOKEN, JSON.stringify(redeemBody(code)), REQUESTS_PER_CODE));
        const token = winnerOf(responses).body.access_token;
        winners++;
        for (const pod of pods) expect(await infoStatus(pod, token)).toBe(200);
      });
    }
    expect(winners).toBe(TRANSFER_CODE_COUNT);
    figure(
      `${TRANSFER_CODE_COUNT} codes raced ${REQUESTS_PER_CODE} ways over three nodes: ${winners} winners, one each`,
    );
    figure(`statements repeated after a conflict: ${(await conflictsOf(pods)) - before}`);
    figure(`longest wait for an exchange: ${longest.milliseconds - RACE_START_MS} ms`);
  });
});

describe('protocol §5.6, on three nodes', () => {
  it(`each of ${CODE_COUNT} codes with remember, raced by ${REQUESTS_PER_RACE} exchanges on all nodes, gives one browser`, async () => {
    const { pods } = cluster;
    const before = await conflictsOf(pods);
    const longest = new LongestWait();
    let [unavailableCount, slowRaceCount] = [0, 0];
    for (let done = 0; done < CODE_COUNT; done++) {
      const maker = pods[done % 3] ?? pods[0];
      const { entity_id, access_token } = await newCustomer(maker);
      const { code, verifier } = await moveOf(maker, access_token);
      const text = JSON.stringify(redeemBody(code, { code_verifier: verifier, remember: 'browser' }));
      const wait = new LongestWait();
      const sent = wait.of(race(pods, TOKEN, text, REQUESTS_PER_RACE, { origin: ACME_ORIGIN }));
      const responses = await longest.of(sent);
      const unavailable = responses.filter(({ status }) => status === 503);
      const winner = winnerOf(responses.filter(({ status }) => status !== 503));
      expect(winner.body.entity_id).toBe(entity_id);
      expect(responses.filter(({ cookies }) => cookies.length > 0)).toEqual([winner]);
      if (unavailable.length === 0)
        expect(await countOf(`session WHERE customer_id = '${entity_id}'`)).toBe(BROWSER_COUNT);
      unavailableCount += unavailable.length;
      if (wait.milliseconds >= DUPLICATE_WINDOW_MS) {
        slowRaceCount++;
        continue;
      }
      for (const pod of pods) {
        expect(await infoStatus(pod, winner.body.access_token)).toBe(200);
        const returning = await pod.post(TOKEN, cookieBody(), { cookie: cookieHeader(winner) });
        expect(returning.body.entity_id).toBe(entity_id);
      }
    }
    figure(`${CODE_COUNT} codes with remember raced ${REQUESTS_PER_RACE} ways over three nodes: one browser each`);
    figure(
      `  ${unavailableCount} of ${CODE_COUNT * REQUESTS_PER_RACE} exchanges got 503 and gave nothing; ${slowRaceCount} races took 2 s`,
    );
    expect(slowRaceCount).toBeLessThan(CODE_COUNT);
    const sessions = 'SELECT 1 FROM codes.session WHERE session.browser_id = browser.browser_id';
    expect(await countOf(`browser WHERE NOT EXISTS (${sessions})`), 'browsers of failed exchanges').toBe(0);
    figure(`statements repeated after a conflict: ${(await conflictsOf(pods)) - before}`);
    figure(`longest wait for an exchange: ${longest.milliseconds - RACE_START_MS} ms`);
  });
});
