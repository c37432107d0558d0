import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RACE_START_MS, race } from '../../src/testing/race.js';
import { TOKEN } from '../support/cookie-grant.js';
import { figure, LongestWait } from '../support/measurements.js';
import { times, winnerOf } from '../support/races.js';
import { infoStatus, newCustomer, redeemBody, transferToken } from '../support/transfers.js';
import { type Cluster, conflictsOf, startCluster } from './cluster.js';

const CODES = 1000;
const RACE_SIZE = 6;
/** The number of codes that are raced at the same time. */
const CONCURRENT_CODES = 20;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('codes');
});
afterAll(() => cluster?.stop());

describe('protocol §3.6, on three nodes', () => {
  it(`each of ${CODES} transfer tokens, raced by ${RACE_SIZE} requests on all nodes, gives a token`, async () => {
    const { pods } = cluster;
    const { access_token } = await newCustomer(pods[0]);
    const before = await conflictsOf(pods);
    const longest = new LongestWait();
    let winners = 0;
    for (let done = 0; done < CODES; done += CONCURRENT_CODES) {
      await times(CONCURRENT_CODES, async (index) => {
        const code = await transferToken(pods[index % 3] ?? pods[0], access_token);
        const responses = await longest.of(race(pods, TOKEN, JSON.stringify(redeemBody(code)), RACE_SIZE));
        const token = winnerOf(responses).body.access_token;
        winners++;
        for (const pod of pods) expect(await infoStatus(pod, token)).toBe(200);
      });
    }
    expect(winners).toBe(CODES);
    figure(`${CODES} codes raced ${RACE_SIZE} ways over three nodes: ${winners} winners, one each`);
    figure(`statements repeated after a conflict: ${(await conflictsOf(pods)) - before}`);
    figure(`longest wait for an exchange: ${longest.milliseconds - RACE_START_MS} ms`);
  });
});
