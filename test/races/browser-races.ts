import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, stay } from '../support/customer-refresh.js';
import { expectLimited } from '../support/expect-error.js';
import { times } from '../support/races.js';
import { type Move, moveOf, remember } from '../support/remember.js';
import { FROM_PAGE, LINK } from '../support/sign-in-services.js';
import { ACME, ACME_SITE, AT_RIVAL, PUBLIC_SITE } from '../support/test-registry.js';
import type { HttpClient, TestResponse } from '../support/test-service.js';
import { newCustomer, redeem, TRANSFER, transferBody, transferToken } from '../support/transfers.js';
import { agentsTransferOf, newRacedCustomer, newUser, type RacedCustomer, visit } from './makings.js';
import { inRounds } from './rounds.js';
import { available, MORE_ORGANIZATIONS, patient, type RacePod, type RaceWorld } from './world.js';

const FORGET = '/v2/customer/forget';
const AT_ACME = { client_id: ACME_SITE, organization_id: ACME };

const forget = (pod: HttpClient, cookie: string) => pod.post(FORGET, AT_ACME, { cookie });

/** A browser that has a customer of the other organization only, and that customer. */
async function browserOfRival(pod: HttpClient): Promise<{ cookie: string; rival: string }> {
  const response = await pod.post(TOKEN, cookieBody(AT_RIVAL));
  return { cookie: cookieHeader(response), rival: response.body.entity_id };
}

/** A transfer of a customer that has no browser of its own in the race. */
async function moveOfAnother(pod: HttpClient) {
  const { entity_id, access_token } = await newCustomer(pod);
  return { another: entity_id, move: await moveOf(pod, access_token) };
}

const entityOf = ({ body }: TestResponse): string => body.entity_id;

/**
 * Two requests of one browser at the same time: afterwards its pairs lead to the customers that the responses named.
 */
export function describeBrowserRaces(world: RaceWorld): void {
  /** The customers to which a pair leads, in both processes. */
  async function customersOf(cookie: string, more: object = {}): Promise<string[]> {
    const visits = world.pods.map((pod) => available(() => visit(pod, cookie, more)));
    return (await Promise.all(visits)).map(entityOf);
  }

  /** Checks that a pair leads to a customer, in both processes. */
  async function expectPair(response: TestResponse, entityId: string, more: object = {}) {
    expect(await customersOf(cookieHeader(response), more)).toEqual([entityId, entityId]);
  }

  async function expectLeadsNowhere(cookie: string, entityId: string) {
    expect(await customersOf(cookie)).not.toContain(entityId);
  }

  describe('after `forget`, the browser does not lead to the customer', () => {
    it('that it visits at the same time, and no customer of another organization is lost', () =>
      inRounds('forget / visit', async (race) => {
        const [one, two] = world.pods;
        const { entityId, cookie } = await newRacedCustomer(world.patient);
        const [forgotten, [visited, atRival]] = await race(
          () => available(() => forget(one, cookie)),
          () => Promise.all([visit(two, cookie), visit(two, cookie, AT_RIVAL)]),
        );
        expect(forgotten.status).toBe(200);
        const pairs = [visited, atRival].filter(({ status }) => status === 200).map(cookieHeader);
        for (const pair of [cookie, ...pairs]) await expectLeadsNowhere(pair, entityId);
        if (atRival.status === 200) await expectPair(atRival, entityOf(atRival), AT_RIVAL);
        return entityOf(visited) === entityId ? 'second' : 'first';
      }));

    it('while a transfer reaches the browser, which leads to the transferred customer', () =>
      inRounds('forget / remember', async (race) => {
        const [one, two] = world.pods;
        const { entityId, cookie } = await newRacedCustomer(world.patient);
        const { another, move } = await moveOfAnother(world.patient);
        const [forgotten, moved] = await race(
          () => available(() => forget(one, cookie)),
          () => remember(two, move, { cookie }),
        );
        expect(forgotten.status).toBe(200);
        await expectLeadsNowhere(cookie, entityId);
        if (moved.status === 503) return 'unknown';
        if (moved.status === 200) await expectPair(moved, another);
        else expect(moved.body.error).toBe('identity_conflict');
        return moved.status === 200 ? 'first' : 'second';
      }));

    it('that a new user takes over at the same time, whose own pair leads to it', () =>
      inRounds('forget / sign-in with link', async (race) => {
        const [one, two] = world.pods;
        const { entityId, cookie } = await newRacedCustomer(world.patient);
        const assertion = await world.assert(newUser());
        const [forgotten, signedIn] = await race(
          () => available(() => forget(one, cookie)),
          () => signIn(two, assertion, LINK, { ...FROM_PAGE, cookie }),
        );
        expect(forgotten.status).toBe(200);
        await expectLeadsNowhere(cookie, entityId);
        if (signedIn.status !== 200) return 'unknown';
        await expectPair(signedIn, entityOf(signedIn));
        return entityOf(signedIn) === entityId ? 'second' : 'first';
      }));
  });

  it('two new users who sign in with link in one browser get two customers, to which their pairs lead', () =>
    inRounds('two sign-ins with link', async (race) => {
      const [one, two] = world.pods;
      const { entityId, cookie } = await newRacedCustomer(world.patient);
      const [first, second] = [await world.assert(newUser()), await world.assert(newUser())];
      const headers = { ...FROM_PAGE, cookie };
      const responses = await race(
        () => signIn(one, first, LINK, headers),
        () => signIn(two, second, LINK, headers),
      );
      const signedIn = responses.filter(({ status }) => status === 200);
      for (const response of signedIn) await expectPair(response, entityOf(response));
      expect(new Set(signedIn.map(entityOf)).size).toBe(signedIn.length);
      if (signedIn.length < 2) return 'unknown';
      await expectLeadsNowhere(cookie, entityId);
      return entityOf(responses[0]) === entityId ? 'first' : 'second';
    }));

  it('a new user who signs in with link in two browsers at once gets one customer', () =>
    inRounds('one user in two browsers', async (race) => {
      const [one, two] = world.pods;
      const browsers = [await newRacedCustomer(world.patient), await newRacedCustomer(world.patient)] as const;
      const sub = newUser();
      const [first, second] = [await world.assert(sub), await world.assert(sub)];
      const responses = await race(
        () => signIn(one, first, LINK, { ...FROM_PAGE, cookie: browsers[0].cookie }),
        () => signIn(two, second, LINK, { ...FROM_PAGE, cookie: browsers[1].cookie }),
      );
      const signedIn = responses.filter(({ status }) => status === 200);
      const [entityId] = signedIn.map(entityOf);
      for (const response of signedIn) {
        expect(entityOf(response)).toBe(entityId);
        await expectPair(response, entityOf(response));
      }
      if (signedIn.length < 2) return 'unknown';
      return entityId === browsers[0].entityId ? 'first' : 'second';
    }));

  it('a user who signs in while an agent asks for the same external id is one customer', () =>
    inRounds('sign-in / external id', async (race) => {
      const [one, two] = world.pods;
      const sub = newUser();
      const assertion = await world.assert(sub);
      const [signedIn, ofAgent] = await race(
        () => signIn(one, assertion, LINK, FROM_PAGE),
        () => two.post(TOKEN, agentTokenBody({ external_id: sub }), world.agent),
      );
      if (signedIn.status !== 200 || ofAgent.status !== 200) return 'unknown';
      expect(entityOf(ofAgent)).toBe(entityOf(signedIn));
      await expectPair(signedIn, entityOf(signedIn));
      return ofAgent.body.created ? 'second' : 'first';
    }));

  it('a new user signs in with link while a transfer reaches the browser, and each pair leads to its customer', () =>
    inRounds('sign-in with link / remember', async (race) => {
      const [one, two] = world.pods;
      const { entityId, cookie } = await newRacedCustomer(world.patient);
      const { another, move } = await moveOfAnother(world.patient);
      const assertion = await world.assert(newUser());
      const [signedIn, moved] = await race(
        () => signIn(one, assertion, LINK, { ...FROM_PAGE, cookie }),
        () => remember(two, move, { cookie }),
      );
      if (signedIn.status !== 200 || moved.status === 503) return 'unknown';
      expect(entityOf(signedIn)).toBe(entityId);
      await expectPair(signedIn, entityId);
      if (moved.status === 200) await expectPair(moved, another);
      else expect(moved.body.error).toBe('identity_conflict');
      return moved.status === 200 ? 'first' : 'second';
    }));

  it('a browser visits an organization while a transfer reaches it, and each pair leads to its customer', () =>
    inRounds('first visit / remember', async (race) => {
      const [one, two] = world.pods;
      const { cookie, rival } = await browserOfRival(world.patient);
      const { another, move } = await moveOfAnother(world.patient);
      const [visited, moved] = await race(
        () => available(() => visit(one, cookie)),
        () => remember(two, move, { cookie }),
      );
      expect(visited.status).toBe(200);
      await expectPair(visited, entityOf(visited));
      expect(entityOf(visited)).not.toBe(another);
      if (moved.status === 503) return 'unknown';
      if (moved.status === 200) {
        await expectPair(moved, another);
        await expectPair(moved, rival, AT_RIVAL);
      } else expect(moved.body.error).toBe('identity_conflict');
      return moved.status === 200 ? 'second' : 'first';
    }));

  it('a browser visits an organization while a new user signs in with link, and no two users share a customer', async () => {
    const ended: string[] = [];
    await inRounds('first visit / sign-in with link', async (race) => {
      const [one, two] = world.pods;
      const { cookie } = await browserOfRival(world.patient);
      const assertion = await world.assert(newUser());
      const [visited, signedIn] = await race(
        () => visit(one, cookie),
        () => signIn(two, assertion, LINK, { ...FROM_PAGE, cookie }),
      );
      if (visited.status !== 200 || signedIn.status !== 200) return 'unknown';
      await expectPair(signedIn, entityOf(signedIn));
      const isTaken = entityOf(visited) === entityOf(signedIn);
      const isActive = await world.isActive(visited.body.access_token);
      expect(isActive).toEqual([!isTaken, !isTaken]);
      if (isTaken) ended.push(visited.body.access_token);
      if (isTaken) await expectLeadsNowhere(cookie, entityOf(visited));
      else await expectPair(visited, entityOf(visited));
      return isTaken ? 'first' : 'second';
    });
    expect(await world.acceptedByVerifier(ended)).toEqual([]);
  });
}

const REQUEST_COUNT = 40;
/**
 * Protocol §3.10: the devices of a customer by transfer, its unredeemed transfer tokens, and its sessions by transfer.
 */
const MAX_DEVICES = 20;
const MAX_CODES = 60;
const MAX_TRANSFER_SESSIONS = 200;
/** Protocol §5.3: the customers of a browser, and those of one organization. */
const MAX_CUSTOMERS = 500;
const MAX_ORGANIZATION_CUSTOMERS = 50;
const CUSTOMERS_BEFORE_COUNT = 490;
/** A browser has at most this number of customers of one organization before the requests at the bound. */
const GROUPS_PER_ORGANIZATION = 49;
/** How many of a customer's things there are before the requests at a bound. */
const FEWER_COUNT = 10;

/** 40 requests at the same time do not exceed a bound. */
export function describeBoundRaces(world: RaceWorld): void {
  const podOf = (index: number) => patient(world.pods[index % world.pods.length] as RacePod);
  /** A request for a transfer token, by the customer or by an agent in turn. */
  const transfer = (pod: RacePod, index: number, { entityId, token }: RacedCustomer) =>
    index % 4 < 2 ? pod.post(TRANSFER, transferBody(), bearer(token)) : agentsTransferOf(pod, world.agent, entityId);

  /** Checks that some requests were successful and all others were limited. */
  function expectSuccessful(responses: TestResponse[], count: number): TestResponse[] {
    const successful = responses.filter(({ status }) => status === 200);
    expect(successful.length).toBe(count);
    for (const response of responses.filter(({ status }) => status !== 200)) expectLimited(response);
    return successful;
  }

  it(`${REQUEST_COUNT} requests for transfer tokens at once leave ${MAX_CODES}, and none is replaced`, async () => {
    const customer = await newRacedCustomer(world.patient);
    const ask = (index: number) => transfer(podOf(index), index, customer);
    const before = await times(MAX_CODES - FEWER_COUNT, ask);
    const made = expectSuccessful(await times(REQUEST_COUNT, ask), FEWER_COUNT);
    const codes = [...before, ...made].map(({ body }) => body.identity_transfer_token);
    const redeemed = await times(MAX_CODES, (index) => redeem(podOf(index), codes[index]));
    expect(redeemed.map(entityOf)).toEqual(Array(MAX_CODES).fill(customer.entityId));
  });

  it(`${REQUEST_COUNT} requests for transfer tokens at once leave ${MAX_TRANSFER_SESSIONS} sessions by transfer`, async () => {
    const customer = await newRacedCustomer(world.patient);
    for (let made = 0; made < MAX_TRANSFER_SESSIONS - FEWER_COUNT; made += FEWER_COUNT) {
      const codes = await times(FEWER_COUNT, (index) => transferToken(podOf(index), customer.token));
      const redeemed = await times(FEWER_COUNT, (index) => redeem(podOf(index), codes[index]));
      expect(redeemed.map(entityOf)).toEqual(Array(FEWER_COUNT).fill(customer.entityId));
    }
    expectSuccessful(await times(REQUEST_COUNT, (index) => transfer(podOf(index), index, customer)), FEWER_COUNT);
  });

  it(`${REQUEST_COUNT} transfers of one customer at once leave ${MAX_DEVICES} devices, and the other codes stay usable`, async () => {
    const { entityId, token } = await newRacedCustomer(world.patient);
    const moves = await times(REQUEST_COUNT, () => moveOf(world.patient, token));
    const responses = await times(REQUEST_COUNT, (index) => {
      const move = moves[index] as Move;
      return index % 4 < 2 ? stay(podOf(index), move) : remember(podOf(index), move);
    });
    const devices = responses.filter(({ status }) => status === 200);
    expect(devices.length).toBe(MAX_DEVICES);
    const uses = devices.map(async (device) => {
      const { refresh_token } = device.body;
      if (!refresh_token) return entityOf(await visit(world.patient, cookieHeader(device)));
      return (await refreshCustomer(world.patient, refresh_token)).body.entity_id;
    });
    expect(await Promise.all(uses)).toEqual(Array(MAX_DEVICES).fill(entityId));
    const refused = responses.flatMap(({ status }, index) => (status === 200 ? [] : [index]));
    for (const index of refused) {
      expect(responses[index]).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } });
      const { code, verifier } = moves[index] as Move;
      expect(entityOf(await redeem(world.patient, code, { code_verifier: verifier }))).toBe(entityId);
    }
  });

  const visitGroup = (pod: HttpClient, organization: string, cookie?: string) => {
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: organization });
    return pod.post(`/v2/customer/${organization}/${randomUUID()}/token`, body, cookie ? { cookie } : {});
  };
  /** The browser's id and secret, which all its pairs have. */
  const secretIn = (pair: string) => /__svc_cst=(\w{96})/.exec(pair)?.[1];

  it(`${REQUEST_COUNT} visits of groups at once leave at most ${MAX_CUSTOMERS} customers in a browser`, async () => {
    const [first = '', ...organizations] = MORE_ORGANIZATIONS;
    const cookie = cookieHeader(await visitGroup(world.patient, first));
    const earlier = Array.from(
      { length: CUSTOMERS_BEFORE_COUNT - 1 },
      (_, index) => organizations[Math.floor(index / GROUPS_PER_ORGANIZATION)] as string,
    );
    while (earlier.length > 0) {
      const visits = earlier.splice(0, 10).map((id) => visitGroup(world.patient, id, cookie));
      for (const { status } of await Promise.all(visits)) expect(status).toBe(200);
    }
    const last = MORE_ORGANIZATIONS.at(-1) as string;
    const responses = await times(REQUEST_COUNT, (index) => visitGroup(podOf(index), last, cookie));
    const visited = responses.filter(({ status }) => status === 200);
    const inBrowser = visited.filter((response) => secretIn(cookieHeader(response)) === secretIn(cookie));
    expect(inBrowser.length).toBeGreaterThan(0);
    expect(inBrowser.length).toBeLessThanOrEqual(MAX_CUSTOMERS - CUSTOMERS_BEFORE_COUNT);
    expect(visited.length).toBeGreaterThan(inBrowser.length);
  });

  it(`${REQUEST_COUNT} visits of groups at once leave ${MAX_ORGANIZATION_CUSTOMERS} customers of one organization in a browser`, async () => {
    const [organization = ''] = MORE_ORGANIZATIONS;
    const visits = [await visitGroup(world.patient, organization)];
    const cookie = cookieHeader(visits[0] as TestResponse);
    for (let made = 1; made < REQUEST_COUNT; made++) visits.push(await visitGroup(world.patient, organization, cookie));
    visits.push(...(await times(REQUEST_COUNT, (index) => visitGroup(podOf(index), organization, cookie))));
    for (const visited of visits) {
      expect(visited.status).toBe(200);
      expect(secretIn(cookieHeader(visited))).toBe(secretIn(cookie));
    }
    const leading = await Promise.all(visits.map((visited) => world.browserCountOf(entityOf(visited))));
    expect(leading.filter((count) => count === 1)).toHaveLength(MAX_ORGANIZATION_CUSTOMERS);
    expect(leading.filter((count) => count > 1)).toEqual([]);
  });
}
