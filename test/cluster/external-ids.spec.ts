import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { RACE_START_MS, race } from '../../packages/conformance-kit/src/race.js';
import { roundsOf } from '../nightly.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { implicitToken } from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectUnavailable } from '../support/expect-error.js';
import { figure, LongestWait } from '../support/measurements.js';
import { successfulOf, times } from '../support/races.js';
import type { TestResponse } from '../support/test-service.js';
import { type ClusterPod, conflictsOf, othersOf, useCluster } from './cluster.js';
import { retryUntilAvailable, untilServing } from './node-outages.js';

const ID_COUNT = roundsOf({ byDay: 40, nightly: 200 });
const CONCURRENT_ID_COUNT = 10;
const REQUESTS_PER_RACE = 6;
const OUTAGE_ID_COUNT = 60;
/** The interval between races, so that some races end before the kill, some overlap it, and some start after it. */
const RACE_INTERVAL_MS = 20;

const cluster = useCluster('external_ids');
let agent: { authorization: string };
beforeAll(async () => {
  agent = bearer(await implicitToken(cluster.pods[0]));
});

const textFor = (externalId: string) => JSON.stringify(agentTokenBody({ external_id: externalId }));
const send = (pod: ClusterPod, externalId: string) => pod.post(TOKEN, textFor(externalId), agent);
const raceFor = (externalId: string) => race(cluster.pods, TOKEN, textFor(externalId), REQUESTS_PER_RACE, agent);
const customersIn = (responses: TestResponse[]) => new Set(responses.map(({ body }) => body.entity_id));

/** The number of customers that no browser created. */
async function customerCount(pod: ClusterPod): Promise<number> {
  const rows = await pod.node.query('SELECT COUNT(*) AS count FROM external_ids.customer WHERE creator <> "browser"');
  return Number((rows as { count: number }[])[0]?.count);
}

describe('protocol §5.7, on three nodes', () => {
  it(`each of ${ID_COUNT} external ids, raced by ${REQUESTS_PER_RACE} calls on all nodes, gets one customer`, async () => {
    const { pods } = cluster;
    const [customersBefore, conflictsBefore] = [await customerCount(pods[0]), await conflictsOf(pods)];
    const longest = new LongestWait();
    let unavailableCount = 0;
    for (let done = 0; done < ID_COUNT; done += CONCURRENT_ID_COUNT) {
      await times(CONCURRENT_ID_COUNT, async () => {
        const id = randomUUID();
        const responses = await longest.of(raceFor(id));
        const unavailable = responses.filter(({ status }) => status === 503);
        const repeated = await Promise.all(pods.map((pod) => retryUntilAvailable(() => send(pod, id))));
        const seen = [...responses.filter(({ status }) => status !== 503), ...repeated];
        expect(new Set(seen.map(({ status }) => status))).toEqual(new Set([200]));
        expect(customersIn(seen).size).toBe(1);
        const created = seen.filter(({ body }) => body.created);
        expect(created.length).toBeLessThanOrEqual(1);
        if (unavailable.length === 0) expect(created).toHaveLength(1);
        unavailableCount += unavailable.length;
      });
    }
    expect((await customerCount(pods[2])) - customersBefore).toBe(ID_COUNT);
    figure(
      `${ID_COUNT} external ids raced ${REQUESTS_PER_RACE} ways over three nodes: ${ID_COUNT} customers, one each`,
    );
    figure(`${unavailableCount} calls got 503`);
    figure(`statements repeated after a conflict: ${(await conflictsOf(pods)) - conflictsBefore}`);
    figure(`longest wait for a customer: ${longest.milliseconds - RACE_START_MS} ms`);
  });

  it(`each of ${OUTAGE_ID_COUNT} external ids gets one customer if a node is killed meanwhile and callers retry`, async () => {
    const { pods } = cluster;
    const hit = pods[2];
    const before = await customerCount(pods[0]);
    const ids = Array.from({ length: OUTAGE_ID_COUNT }, () => randomUUID());
    const races = ids.map(async (id, position) => {
      await sleep(position * RACE_INTERVAL_MS);
      return raceFor(id);
    });
    await races[0];
    hit.node.kill();
    const all = await Promise.all(races);
    const unavailable = all.flat().filter(({ status }) => status === 503);
    for (const response of unavailable) expectUnavailable(response);
    expect(unavailable.length, 'the kill must hit something').toBeGreaterThan(0);
    const retried = await Promise.all(
      ids.map((id, index) => retryUntilAvailable(() => send(othersOf(pods, hit)[index % 2] ?? pods[0], id))),
    );
    await hit.node.start();
    await untilServing(hit);
    for (const [index, responses] of all.entries()) {
      expect(responses.every(({ status }) => status === 200 || status === 503)).toBe(true);
      const id = ids[index] as string;
      const seen = [...successfulOf(responses), retried[index] as TestResponse, await send(hit, id)];
      expect(customersIn(seen).size).toBe(1);
      expect(seen.filter(({ body }) => body.created).length).toBeLessThanOrEqual(1);
    }
    expect((await customerCount(pods[1])) - before).toBe(OUTAGE_ID_COUNT);
    figure(`${OUTAGE_ID_COUNT} external ids raced while a node was killed: one customer each after retries`);
    figure(`  ${unavailable.length} of ${OUTAGE_ID_COUNT * REQUESTS_PER_RACE} calls got 503`);
  });
});
