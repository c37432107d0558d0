import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import { expectKeysOnly } from '../support/statement-plans.js';
import { ACME } from '../support/test-registry.js';
import { serviceOfTest } from '../support/use-service.js';
import { conflictsOf, useCluster } from './cluster.js';

const GROUP_COUNT = 100;
const REQUESTS_PER_RACE = 6;

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
