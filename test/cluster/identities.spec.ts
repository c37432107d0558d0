import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import { ACME } from '../support/test-registry.js';
import { type Cluster, conflictsOf, othersOf, startCluster } from './cluster.js';
import { CustomerLoad } from './customer-load.js';

const ROUNDS = 200;
const CONCURRENT_ROUNDS = 10;
const GROUPS = 100;
const RACE_SIZE = 6;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('identities');
});
afterAll(() => cluster?.stop());

describe('protocol §5.3, on three nodes', () => {
  it(`a customer of one node is the same customer on every node at once, ${ROUNDS} times`, async () => {
    const { pods } = cluster;
    const load = new CustomerLoad(pods); // Other transactions that the nodes must replicate.
    for (let done = 0; done < ROUNDS; done += CONCURRENT_ROUNDS) {
      await times(CONCURRENT_ROUNDS, async (index) => {
        const creator = pods[index % 3] ?? pods[0];
        const made = await creator.post(TOKEN, cookieBody());
        const headers = { cookie: cookieHeader(made) };
        const again = await Promise.all(othersOf(pods, creator).map((pod) => pod.post(TOKEN, cookieBody(), headers)));
        const seen = [made, ...again].map(({ status, body }) => ({ status, id: body.entity_id }));
        expect(seen).toEqual(Array(3).fill({ status: 200, id: made.body.entity_id }));
      });
    }
    await load.stop();
    expect(load.errorResponses).toEqual([]);
    figure(`${ROUNDS} customers created on one node, each the same at once on the other two`);
  });

  it(`concurrent requests with one cookie pair create one identity in each of ${GROUPS} groups`, async () => {
    const { pods } = cluster;
    const before = await conflictsOf(pods);
    const cookie = cookieHeader(await pods[0].post(TOKEN, cookieBody()));
    for (let done = 0; done < GROUPS; done++) {
      const path = `/v2/customer/${ACME}/${randomUUID()}/token`;
      const responses = await times(RACE_SIZE, (index) =>
        (pods[index % 3] ?? pods[0]).post(path, cookieBody(), { cookie }),
      );
      expect(responses.map(({ status }) => status)).toEqual(Array(RACE_SIZE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
    }
    const rows = await pods[1].node.query(
      "SELECT COUNT(*) AS made FROM identities.customer_identity WHERE group_id <> ''",
    );
    expect(rows).toEqual([{ made: GROUPS }]);
    const repeated = (await conflictsOf(pods)) - before;
    figure(
      `${GROUPS} groups with ${RACE_SIZE} concurrent requests each: one identity each, ${repeated} repeated statements`,
    );
  });
});
