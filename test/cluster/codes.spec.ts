import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RACE_START_MS, race } from '../../packages/conformance-kit/src/race.js';
import { TOKEN } from '../support/cookie-grant.js';
import { figure, LongestWait } from '../support/measurements.js';
import { times, winnerOf } from '../support/races.js';
import { infoStatus, newCustomer, redeemBody, transferToken } from '../support/transfers.js';
import { type Cluster, conflictsOf, startCluster } from './cluster.js';

const CODE_COUNT = 1000;
const REQUESTS_PER_RACE = 6;
/** The number of codes that are raced at the same time. */
const CONCURRENT_CODE_COUNT = 20;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('codes');
});
afterAll(() => cluster?.stop());

describe('protocol §3.6, on three nodes', () => {
  it(`each of ${CODE_COUNT} transfer tokens, raced by ${REQUESTS_PER_RACE} requests on all nodes, gives a token`, async () => {
    const { pods } = cluster;
    const { access_token } = await newCustomer(pods[0]);
    const before = await conflictsOf(pods);
    const longest = new LongestWait();
    let winners = 0;
    for (let done = 0; done < CODE_COUNT; done += CONCURRENT_CODE_COUNT) {
      await times(CONCURRENT_CODE_COUNT, async (index) => {
        const code = await transferToken(pods[index % 3] ?? pods[0], access_token);
        const responses = await longest.of(race(pods, TOKEN, JSON.stringify(redeemBody(code)), REQUESTS_PER_RACE));
        const token = winnerOf(responses).body.access_token;
        winners++;
        for (const pod of pods) expect(await infoStatus(pod, token)).toBe(200);
      });
    }
    expect(winners).toBe(CODE_COUNT);
    figure(`${CODE_COUNT} codes raced ${REQUESTS_PER_RACE} ways over three nodes: ${winners} winners, one each`);
    figure(`statements repeated after a conflict: ${(await conflictsOf(pods)) - before}`);
    figure(`longest wait for an exchange: ${longest.milliseconds - RACE_START_MS} ms`);
  });
});
