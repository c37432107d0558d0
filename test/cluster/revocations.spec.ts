import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import { infoStatus, newCustomer } from '../support/transfers.js';
import { type Cluster, othersOf, startCluster } from './cluster.js';

const ROUND_COUNT = 200;
/** The number of concurrent revocations, so that the nodes are under load. */
const CONCURRENT_ROUND_COUNT = 10;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('revocations');
});
afterAll(() => cluster?.stop());

describe('protocol §3.13, on three nodes', () => {
  it(`a token that was revoked on one node is rejected on every node at once, ${ROUND_COUNT} times`, async () => {
    for (let done = 0; done < ROUND_COUNT; done += CONCURRENT_ROUND_COUNT) {
      await times(CONCURRENT_ROUND_COUNT, async (index) => {
        const revoker = cluster.pods[index % 3] ?? cluster.pods[0];
        const others = othersOf(cluster.pods, revoker);
        const { access_token } = await newCustomer(revoker);
        expect(await Promise.all(others.map((pod) => infoStatus(pod, access_token)))).toEqual([200, 200]);
        expect((await revoker.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
        expect(await Promise.all([...others, revoker].map((pod) => infoStatus(pod, access_token)))).toEqual([
          401, 401, 401,
        ]);
      });
    }
    figure(`${ROUND_COUNT} tokens revoked on one node, each rejected at once on all three`);
  });
});
