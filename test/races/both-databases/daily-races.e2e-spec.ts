import { afterAll, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { registryWithSignIn, SignInSystem, signIn } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader } from '../../support/cookie-grant.js';
import { useDatabase } from '../../support/databases.js';
import { END_SESSIONS } from '../../support/end-sessions.js';
import { ERASE, managerToken, managingRegistry } from '../../support/managed-customers.js';
import { purge } from '../../support/operator-commands.js';
import { moveOf, remember } from '../../support/remember.js';
import { FROM_PAGE, LINK, REMEMBER } from '../../support/sign-in-services.js';
import { ACME, ACME_SITE, changed } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { type UsedService, useService } from '../../support/use-service.js';
import { agentsTokenFor, newRacedCustomer, newUser, type RacedCustomer, visit } from '../makings.js';
import { inRounds, type Order, RACE_TIMEOUT_MS } from '../rounds.js';
import { available } from '../world.js';

const IDLE_DAYS = 30;
const CUSTOMERS_PER_PURGE = 5;

vi.setConfig({ testTimeout: RACE_TIMEOUT_MS });

let users: SignInSystem;
const database = useDatabase(createTestDatabase);

/** Two services on one database, whose clocks the tests move together. */
const options = async () => {
  users ??= await SignInSystem.start();
  const { issuer } = users.settings();
  const registry = registryWithSignIn(
    { [ACME]: { issuer, jwks: users.jwks, link_browsers: true } },
    managingRegistry(),
  );
  registry.organizations = changed(registry.organizations, [ACME], { idle_days: IDLE_DAYS });
  return { database, registry, environment: { RATE_LIMIT: 'off' } };
};
afterAll(() => users?.issuer.stop());
const one = useService(options);
const two = useService(options);

function passDays(days: number): void {
  for (const service of [one, two]) service.passDays(days);
}

/** One round at a time, because all rounds move the same clocks. */
const inTurn = (name: string, round: Parameters<typeof inRounds>[1]) => inRounds(name, round, 1);
const assertUser = (sub: string) => users.assert(one.clock.now(), { sub });
const managing = async () => bearer(await managerToken(one));

/** The customers to which a pair leads, in both services. */
async function customersOf(cookie: string): Promise<string[]> {
  const visits = await Promise.all([one, two].map((service) => available(() => visit(service, cookie))));
  return visits.map(({ body }) => body.entity_id);
}

/** On a busy machine, a request can get 503. The round then proves nothing. */
const isUnavailable = (...responses: TestResponse[]) => responses.some(({ status }) => status === 503);

/** Checks that a pair leads to a customer, in both services. */
async function expectPair(response: TestResponse, entityId: string): Promise<void> {
  for (const id of await customersOf(cookieHeader(response))) expect(id).toBe(entityId);
}

async function expectEnded(token: string): Promise<void> {
  for (const service of [one, two]) expect(await infoStatus(service, token)).toBe(401);
}

/** Notes which of two requests gets its response first. */
class Arrivals {
  order: Order = 'unknown';

  async note<Result>(order: Order, request: Promise<Result>): Promise<Result> {
    const result = await request;
    if (this.order === 'unknown') this.order = order;
    return result;
  }
}

describe('the first visit of a day does not bring back a customer that the browser loses at the same time', () => {
  type End = (customer: RacedCustomer) => Promise<TestResponse>;

  async function raceVisit(name: string, prepare: () => Promise<{ end: End; endsTokens: boolean }>) {
    await inTurn(`first visit of a day / ${name}`, async (race) => {
      const customer = await newRacedCustomer(one);
      passDays(1);
      const { end, endsTokens } = await prepare();
      const [ended, visited] = await race(
        () => end(customer),
        () => visit(two, customer.cookie),
      );
      if (isUnavailable(ended, visited)) return 'unknown';
      expect([ended.status, visited.status]).toEqual([200, 200]);
      expect(await customersOf(customer.cookie)).not.toContain(customer.entityId);
      const isBefore = visited.body.entity_id === customer.entityId;
      if (isBefore && endsTokens) await expectEnded(visited.body.access_token);
      return isBefore ? 'second' : 'first';
    });
  }

  it('by `forget`', () =>
    raceVisit('forget', async () => {
      const body = { client_id: ACME_SITE, organization_id: ACME };
      return { end: ({ cookie }) => one.post('/v2/customer/forget', body, { cookie }), endsTokens: false };
    }));

  it('by end_sessions with browsers', () =>
    raceVisit('end_sessions', async () => {
      const agent = await managing();
      const bodyOf = (customer_id: string) => ({ customer_id, browsers: true });
      return { end: ({ entityId }) => one.post(END_SESSIONS, bodyOf(entityId), agent), endsTokens: true };
    }));

  it('by an erasure', () =>
    raceVisit('erasure', async () => {
      const agent = await managing();
      return { end: ({ entityId }) => one.post(ERASE, { customer_id: entityId }, agent), endsTokens: true };
    }));

  it('by a sign-in of a new user with link', () =>
    raceVisit('sign-in with link', async () => {
      const assertion = await assertUser(newUser());
      const end: End = ({ cookie }) => signIn(one, assertion, LINK, { ...FROM_PAGE, cookie });
      return { end, endsTokens: true };
    }));
});

it('the first visit of a day and a transfer that reaches the browser leave each pair with its customer', () =>
  inTurn('first visit of a day / remember', async (race) => {
    const { entityId, cookie } = await newRacedCustomer(one);
    passDays(1);
    const another = await newCustomer(one);
    const move = await moveOf(one, another.access_token);
    const arrivals = new Arrivals();
    const [moved, visited] = await race(
      () => arrivals.note('first', remember(one, move, { cookie, body: { replace: true } })),
      () => arrivals.note('second', visit(two, cookie)),
    );
    if (isUnavailable(moved, visited)) return 'unknown';
    await expectPair(moved, another.entity_id);
    await expectPair(visited, entityId);
    expect(visited.body.entity_id).toBe(entityId);
    return arrivals.order;
  }));

describe('a purge', () => {
  it('either retains an idle customer or makes an agent’s request for it fail', () =>
    inTurn('purge / agent’s token', async (race) => {
      const customers = await Promise.all(Array.from({ length: CUSTOMERS_PER_PURGE }, () => newCustomer(one)));
      passDays(IDLE_DAYS + 2);
      const agent = await managing();
      const [purged, responses] = await race(
        () => purge(one),
        () => Promise.all(customers.map(({ entity_id }) => agentsTokenFor(two, agent, entity_id))),
      );
      expect(purged).toBeDefined();
      for (const [index, { status, body }] of responses.entries()) {
        const again = await agentsTokenFor(one, agent, customers[index]?.entity_id as string);
        if (status === 503 || again.status === 503) continue;
        expect(again.status).toBe(status);
        if (status === 200)
          for (const service of [one, two]) expect(await infoStatus(service, body.access_token)).toBe(200);
      }
      return responses.some(({ status }) => status === 200) ? 'second' : 'first';
    }));

  /**
   * Purges an idle browser while it is used. The pair of the response leads to the customer that the response names.
   */
  async function racePurge(
    name: string,
    prepare: (cookie: string) => Promise<(service: UsedService) => Promise<TestResponse>>,
  ) {
    await inTurn(`purge / ${name}`, async (race) => {
      const { cookie } = await newRacedCustomer(one);
      passDays(IDLE_DAYS + 2);
      const use = await prepare(cookie);
      const arrivals = new Arrivals();
      const [purged, response] = await race(
        () => arrivals.note('first', purge(one)),
        () => arrivals.note('second', use(two)),
      );
      expect(purged).toBeDefined();
      if (isUnavailable(response)) return 'unknown';
      expect(response.status).toBe(200);
      await expectPair(response, response.body.entity_id);
      return arrivals.order;
    });
  }

  it('of an idle browser leaves a customer that the browser gets at the same time', () =>
    racePurge('visit', async (cookie) => (service) => visit(service, cookie)));

  it('of an idle browser leaves a user that signs in in it at the same time', () =>
    racePurge('sign-in', async (cookie) => {
      const assertion = await assertUser(newUser());
      return (service) => signIn(service, assertion, REMEMBER, { ...FROM_PAGE, cookie });
    }));

  it('of an idle browser leaves a customer that a transfer brings to it at the same time', () =>
    racePurge('remember', async (cookie) => {
      const move = await moveOf(one, (await newCustomer(one)).access_token);
      return (service) => remember(service, move, { cookie });
    }));
});
