import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { roundsOf } from '../nightly.js';
import { registryWithSignIn, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { implicitToken } from '../support/authorization-page.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { AS_OPERATOR } from '../support/customer-events.js';
import { refreshCustomer, stay } from '../support/customer-refresh.js';
import { END_SESSIONS } from '../support/end-sessions.js';
import { type Given, type RacedCustomer, raceEnd, sumOf } from '../support/ending-race.js';
import { ERASE, managingRegistry } from '../support/managed-customers.js';
import { manage } from '../support/management-api.js';
import { figure } from '../support/measurements.js';
import { successfulOf, times } from '../support/races.js';
import { moveOf } from '../support/remember.js';
import { FROM_PAGE, LINK } from '../support/sign-in-services.js';
import { newTenant } from '../support/tenants.js';
import { ACME } from '../support/test-registry.js';
import type { HttpClient, TestResponse } from '../support/test-service.js';
import { infoStatus, newCustomer } from '../support/transfers.js';
import { type ClusterPod, conflictsOf, useCluster } from './cluster.js';
import { retryUntilAvailable } from './node-outages.js';

const ROUND_COUNT = roundsOf({ byDay: 6, nightly: 20 });
/** If all requests of the rounds came before the end of the customer, or all after it, more rounds follow. */
const MAX_ROUNDS = 40;
const REQUESTS_PER_RACE = 6;
/** More than the erasure deletes in one step. */
const TENANT_CUSTOMER_COUNT = 100;

type Admin = Parameters<typeof newTenant>[0]['admin'];

let users: SignInSystem;
afterAll(() => users?.issuer.stop());
const cluster = useCluster('endings', async () => {
  users = await SignInSystem.start();
  const { issuer } = users.settings();
  const settings = { issuer, jwks: users.jwks, link_browsers: true };
  return registryWithSignIn({ [ACME]: settings }, managingRegistry());
});
let agent: { authorization: string };
beforeAll(async () => {
  agent = bearer(await implicitToken(cluster.pods[0]));
});

/** The pods, each of them in the first place in turn. */
function podsInTurn(round: number): ClusterPod[] {
  const { pods } = cluster;
  const first = round % pods.length;
  return [...pods.slice(first), ...pods.slice(0, first)];
}

/**
 * Calls `race` at least ROUND_COUNT times, until it has shown enough, and reports the statements that were repeated.
 */
async function inRounds(
  what: string,
  race: (pods: ClusterPod[], round: number) => Promise<string | undefined>,
  isEnough = () => true,
) {
  const before = await conflictsOf(cluster.pods);
  const results: string[] = [];
  for (let round = 0; round < ROUND_COUNT || (round < MAX_ROUNDS && !isEnough()); round++)
    results.push((await race(podsInTurn(round), round)) ?? '');
  const repeated = (await conflictsOf(cluster.pods)) - before;
  const counts = [...new Set(results)].map((result) => `${results.filter((each) => each === result).length} ${result}`);
  figure(`${what}: ${results.length} rounds (${counts.join(', ').trim()}), ${repeated} repeated statements`);
}

/** Ends a customer in each round while everything that leads to it is used. */
async function endInRounds(
  what: string,
  send: (customer: RacedCustomer, client: HttpClient, round: number) => Promise<TestResponse>,
) {
  const all: Given[] = [];
  const endOne = async (pods: ClusterPod[], round: number) => {
    const given = await raceEnd(pods, async (customer, client) => {
      const { status } = await retryUntilAvailable(() => send(customer, client, round));
      expect([200, 401]).toContain(status); // a repetition of a request with a customer's token finds it ended
    });
    all.push(given);
    return 'rounds';
  };
  const isEnough = () => sumOf(all).accessTokens > 0 && sumOf(all).rejected > 0;
  await inRounds(what, endOne, isEnough);
  const total = sumOf(all);
  figure(`  given meanwhile: ${JSON.stringify(total)}`);
  expect(total.accessTokens).toBeGreaterThan(0);
  expect(total.rejected).toBeGreaterThan(0);
}

const visit = (pod: HttpClient, cookie: string, more: object = {}) => pod.post(TOKEN, cookieBody(more), { cookie });
const assertUser = (sub: string) => users.assert(Date.now(), { sub });

describe('on three nodes, while everything that leads to a customer is used', () => {
  it('end_sessions leaves nothing that gives a token', async () => {
    await endInRounds('end_sessions', ({ access_token, cookie }, client, round) =>
      client.post(END_SESSIONS, round % 2 === 0 ? {} : { browsers: true }, { ...bearer(access_token), cookie }),
    );
  });

  it('an erasure leaves nothing that gives a token', async () => {
    await endInRounds('erasure', ({ entity_id }, client) => client.post(ERASE, { customer_id: entity_id }, agent));
  });
});

describe('on three nodes, at the same time', () => {
  it('uses of one refresh token get the same successor', async () => {
    let { refresh_token } = (
      await stay(cluster.pods[0], await moveOf(cluster.pods[0], (await newCustomer(cluster.pods[0])).access_token))
    ).body;
    await inRounds(`refresh raced ${REQUESTS_PER_RACE} ways`, async (pods) => {
      const responses = await times(REQUESTS_PER_RACE, (index) =>
        retryUntilAvailable(() => refreshCustomer(pods[index % pods.length] as ClusterPod, refresh_token)),
      );
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.refresh_token)).size).toBe(1);
      refresh_token = responses[0]?.body.refresh_token;
      return 'with one successor';
    });
  });

  it('sign-ins of one new user from one browser lead to the customer of the browser', async () => {
    await inRounds(`sign-in raced ${REQUESTS_PER_RACE} ways`, async (pods) => {
      const visitor = await (pods[0] as ClusterPod).post(TOKEN, cookieBody());
      const sub = randomUUID();
      const headers = { ...FROM_PAGE, cookie: cookieHeader(visitor) };
      const assertions = await times(REQUESTS_PER_RACE, () => assertUser(sub));
      const responses = await times(REQUESTS_PER_RACE, (index) =>
        signIn(pods[index % pods.length] as ClusterPod, assertions[index], LINK, headers),
      );
      const signedIn = successfulOf(responses);
      expect(signedIn.length).toBeGreaterThan(0);
      for (const { status } of responses) expect([200, 503]).toContain(status);
      for (const response of signedIn)
        for (const pod of pods) {
          expect(response.body.entity_id).toBe(visitor.body.entity_id);
          expect(await infoStatus(pod, response.body.access_token)).toBe(200);
          expect((await visit(pod, cookieHeader(response))).body.entity_id).toBe(visitor.body.entity_id);
        }
      expect((await visit(pods[1] as ClusterPod, headers.cookie)).body.entity_id).not.toBe(visitor.body.entity_id);
      return `with ${signedIn.length} of ${REQUESTS_PER_RACE}`;
    });
  });
});

describe('protocol §8.2, on three nodes', () => {
  it('an off-boarding erases all customers of the organization, which each node confirms, and no other customer', async () => {
    const { pods } = cluster;
    const adminOf = (pod: ClusterPod) => (method: string, path: string, body?: string | object) =>
      manage(pod, method, path, AS_OPERATOR, body);
    const [one, two, three] = pods.map(adminOf) as [Admin, Admin, Admin];
    const tenant = await newTenant({ admin: one });
    const path = `/admin/organizations/${tenant.id}`;
    const other = await newCustomer(pods[0]);
    for (const pod of pods)
      await expect.poll(async () => (await pod.post(TOKEN, cookieBody(tenant.ofClient))).status).toBe(200);
    await times(TENANT_CUSTOMER_COUNT - pods.length, (index) =>
      retryUntilAvailable(() => (pods[index % 3] ?? pods[0]).post(TOKEN, cookieBody(tenant.ofClient))),
    );
    expect((await two('PATCH', path, { suspended: true })).status).toBe(200);
    expect((await three('DELETE', path)).body.offboarding.customers_left).toBe(TENANT_CUSTOMER_COUNT);
    const dueNow = 'offboarding_at = NOW(3) - INTERVAL 1 HOUR';
    await pods[0].node.query(`UPDATE endings.organization SET ${dueNow} WHERE id = '${tenant.id}'`);
    await pods[0].node.query(
      'UPDATE endings.registry_revision SET complete_from = revision + 1, revision = revision + 1',
    );
    for (const admin of [one, two, three])
      await expect.poll(async () => (await admin('GET', path)).body.offboarding?.customers_left).toBe(0);
    expect((await one('DELETE', `${path}/offboarding`)).status).toBe(409);
    for (const pod of pods) {
      expect((await pod.post(TOKEN, cookieBody(tenant.ofClient))).status).toBe(400);
      expect(await infoStatus(pod, other.access_token)).toBe(200);
    }
  });
});
