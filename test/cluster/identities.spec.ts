import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { roundsOf } from '../nightly.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import { expectKeysOnly } from '../support/statement-plans.js';
import { ACME } from '../support/test-registry.js';
import { infoStatus } from '../support/transfers.js';
import { serviceOfTest } from '../support/use-service.js';
import { type ClusterPod, conflictsOf, useCluster } from './cluster.js';

const GROUP_COUNT = roundsOf({ byDay: 20, nightly: 100 });
const REQUESTS_PER_RACE = 6;
const PAIR_COUNT = Number(process.env.READ_PAIRS ?? roundsOf({ byDay: 100, nightly: 2_000 }));
const CONCURRENT_PAIR_COUNT = 10;

const cluster = useCluster('identities');

describe('protocol §5.3, on three nodes', () => {
  it(`concurrent requests with one cookie pair create one identity in each of ${GROUP_COUNT} groups`, async () => {
    const { pods } = cluster;
    const before = await conflictsOf(pods);
    const cookie = cookieHeader(await pods[0].post(TOKEN, cookieBody()));
    for (let done = 0; done < GROUP_COUNT; done++) {
      const path = `/v2/customer/${ACME}/${randomUUID()}/token`;
      const responses = await times(REQUESTS_PER_RACE, (index) =>
        (pods[index % 3] ?? pods[0]).post(path, cookieBody(), { cookie }),
      );
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
    }
    const rows = await pods[1].node.query("SELECT COUNT(*) AS made FROM identities.customer WHERE group_id <> ''");
    expect(rows).toEqual([{ made: GROUP_COUNT }]);
    const repeated = (await conflictsOf(pods)) - before;
    figure(
      `${GROUP_COUNT} groups with ${REQUESTS_PER_RACE} concurrent requests each: one identity each, ${repeated} repeated statements`,
    );
  });

  it('a returning customer is read by keys only', async () => {
    const { database } = cluster;
    const service = await serviceOfTest({ database });
    await expectKeysOnly(service, new TestBrowser(service));
  });
});

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
