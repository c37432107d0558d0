import { describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import { infoStatus } from '../support/transfers.js';
import { type ClusterPod, useCluster } from './cluster.js';

const PAIR_COUNT = Number(process.env.READ_PAIRS ?? 500);
const CONCURRENT_PAIR_COUNT = 10;

const cluster = useCluster('read_pairs');

describe('protocol §3.13 and §5.3, on three nodes', () => {
  it(`the next node recognizes ${PAIR_COUNT} new customers and rejects ${PAIR_COUNT} ended tokens at once`, async () => {
    const { pods } = cluster;
    const missed = { customers: 0, ends: 0 };
    for (let done = 0; done < PAIR_COUNT; done += CONCURRENT_PAIR_COUNT) {
      await times(CONCURRENT_PAIR_COUNT, async (index) => {
        const [one, next] = [pods[index % 3], pods[(index + 1) % 3]] as [ClusterPod, ClusterPod];
        const made = await one.post(TOKEN, cookieBody());
        const again = await next.post(TOKEN, cookieBody(), { cookie: cookieHeader(made) });
        expect([made.status, again.status]).toEqual([200, 200]);
        if (again.body.entity_id !== made.body.entity_id) missed.customers++;
        const token = made.body.access_token;
        expect(await infoStatus(next, token)).toBe(200);
        expect((await one.send('DELETE', TOKEN, bearer(token))).status).toBe(200);
        if ((await infoStatus(next, token)) === 200) missed.ends++;
      });
    }
    figure(
      `of ${PAIR_COUNT} new customers and ended tokens, the next node missed ${missed.customers} and ${missed.ends}`,
    );
    expect(missed).toEqual({ customers: 0, ends: 0 });
  });
});
