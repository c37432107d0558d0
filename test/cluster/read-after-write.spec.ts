import { afterAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { type LossyProxy, startLossyProxy } from '../support/lossy-proxy.js';
import { figure } from '../support/measurements.js';
import { startPod } from '../support/processes.js';
import { times } from '../support/races.js';
import { type HttpClient, httpClientOf } from '../support/test-service.js';
import { infoStatus, newCustomer } from '../support/transfers.js';
import { othersOf, useCluster } from './cluster.js';

/** READ_PAIRS sets the number of each kind of pairs, and adds a measurement without the session settings. */
const { READ_PAIRS } = process.env;
const PAIR_COUNT = Number(READ_PAIRS ?? 500);
const CONCURRENT_PAIR_COUNT = 10;
const ROUND_COUNT = 200;
const UNKNOWN_VARIABLE_ERRNO = 1193;

const cluster = useCluster('read_pairs');

/**
 * Creates customers on one node, recognizes them on the next one, and ends their tokens there.
 *
 * @returns the number of reads that missed a new customer, and the number of those that missed the end of a token
 */
async function missesOf(pods: HttpClient[]): Promise<{ customers: number; ends: number }> {
  const misses = { customers: 0, ends: 0 };
  for (let done = 0; done < PAIR_COUNT; done += CONCURRENT_PAIR_COUNT) {
    await times(CONCURRENT_PAIR_COUNT, async (index) => {
      const [one, other] = [pods[index % pods.length], pods[(index + 1) % pods.length]] as [HttpClient, HttpClient];
      const made = await one.post(TOKEN, cookieBody());
      const again = await other.post(TOKEN, cookieBody(), { cookie: cookieHeader(made) });
      expect([made.status, again.status]).toEqual([200, 200]);
      if (again.body.entity_id !== made.body.entity_id) misses.customers++;
      const token = made.body.access_token;
      expect(await infoStatus(other, token)).toBe(200);
      expect((await one.send('DELETE', TOKEN, bearer(token))).status).toBe(200);
      if ((await infoStatus(other, token)) === 200) misses.ends++;
    });
  }
  return misses;
}

const textOf = ({ customers, ends }: { customers: number; ends: number }) =>
  `of ${PAIR_COUNT} new customers and ${PAIR_COUNT} ended tokens, the next node missed ${customers} and ${ends}`;

describe('protocol §3.13 and §5.3, on three nodes', () => {
  it(`the next node recognizes ${PAIR_COUNT} new customers and rejects ${PAIR_COUNT} ended tokens at once`, async () => {
    const misses = await missesOf(cluster.pods);
    figure(textOf(misses));
    expect(misses).toEqual({ customers: 0, ends: 0 });
  });

  it(`a token that was revoked on one node is rejected on every node at once, ${ROUND_COUNT} times`, async () => {
    for (let done = 0; done < ROUND_COUNT; done += CONCURRENT_PAIR_COUNT) {
      await times(CONCURRENT_PAIR_COUNT, async (index) => {
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

describe.runIf(READ_PAIRS)('without the session settings', () => {
  const proxies: LossyProxy[] = [];
  afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())));

  it('the figures say how many reads miss a write', async () => {
    let rejected = 0;
    const started = await Promise.all(
      cluster.pods.map(async ({ node }) => {
        const url = node.url('read_pairs');
        const proxy = await startLossyProxy(url);
        proxies.push(proxy);
        const isSetting = (sql: string) => {
          const isOne = /^SET SESSION (wsrep|group_replication)/.test(sql);
          if (isOne) rejected++;
          return isOne;
        };
        proxy.failStatements({ errno: UNKNOWN_VARIABLE_ERRNO, outcome: 'lost' }, isSetting);
        return startPod(cluster, { DATABASE_URL: proxy.through(url) });
      }),
    );
    const misses = await missesOf(started.map((pod) => httpClientOf(pod.url)));
    figure(`without the session settings: ${textOf(misses)}`);
    await Promise.all(started.map((pod) => pod.terminate()));
    expect(rejected).toBeGreaterThanOrEqual(started.length);
  });
});
