import { createHmac } from 'node:crypto';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { claimsOf, newAgent } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import {
  refreshCustomer,
  refreshingRegistry,
  refreshSessionsOf,
  stay,
  stayOf,
} from '../../support/customer-refresh.js';
import { atNextTransaction, failAtEachStatement, LOST_RESPONSE, OUTAGE } from '../../support/dying-transactions.js';
import { endSessions } from '../../support/end-sessions.js';
import {
  expectError,
  expectInvalidGrant,
  expectInvalidRequest,
  expectLimited,
  expectUnavailable,
} from '../../support/expect-error.js';
import { browserIdOf, cookieValue, identitiesOf, secretOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { times, winnerOf } from '../../support/races.js';
import { type Move, moveOf, remember, rememberedPair, transferredSessionsOf } from '../../support/remember.js';
import { delaySelects, statementsOf, statementTextsOf } from '../../support/statements.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_SITE,
  AT_RIVAL,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  SHARED,
} from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import {
  ageRedemption,
  everythingIn,
  infoStatus,
  newCustomer,
  redeem,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const SALES = `/v2/customer/${ACME}/sales/token`;
const group = (name: string) => `/v2/customer/${ACME}/${name}/token`;
const groupOfRival = (name: string) => `/v2/customer/${RIVAL}/${name}/token`;
const AT_SHARED = { client_id: PUBLIC_SITE, organization_id: SHARED };
const TABLES = ['customer', 'browser', 'session'];
/** A browser, and a copy of the session of the earlier one. The transfer token becomes the session of the customer. */
const ADDED_ROWS = [0, 1, 1];
const UNAUTHORIZED = { status: 400, error: 'unauthorized_client', hint: /^remember: / };
/** The customer's row, its sessions, and the transfer token, which becomes the session of the refresh token. */
const STATEMENTS_OF_REFRESH_SESSION = ['UPDATE', 'SELECT', 'UPDATE'];

const grants = { identity_token: { remember: ['browser', 'refresh_token'] } };
const registry = refreshingRegistry({ grants });
const publicSite = registry.clients.find((client) => 'client_id' in client && client.client_id === PUBLIC_SITE);
Object.assign(publicSite as object, { grants });

/** Clients of the organization that may not remember, or not by a refresh token. */
const ofAcme = { name: 'Acme', client_type: 'web', organization_id: ACME, origins: [ACME_ORIGIN] };
const grant_types = ['identity_token', 'refresh_token'];
registry.clients.push(
  { ...ofAcme, client_id: 'without-settings', grant_types },
  { ...ofAcme, client_id: 'only-browsers', grant_types, grants: { identity_token: { remember: ['browser'] } } },
  { ...ofAcme, client_id: 'without-refresh', grant_types: ['identity_token'], grants },
  { ...ofAcme, client_id: 'without-grant-types', grants },
);

const service = useService({ registry, environment: { TRUST_PROXY: '1' } });
const browserIdIn = (cookie: string) => browserIdOf(cookie.split('__svc_cst=')[1] as string);
const from = (ip: string) => ({ 'x-forwarded-for': ip });
const move = async (token?: string) => moveOf(service, token ?? (await newCustomer(service)).access_token);
const endToken = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const rows = () => Promise.all(TABLES.map(rowCountIn));
const rowCountIn = async (table: string) =>
  Number((await service.application.get(DataSource).query(`SELECT COUNT(*) AS n FROM ${table}`))[0].n);
const forget = (cookie: string | undefined, more: object = {}) =>
  service.post(
    '/v2/customer/forget',
    { client_id: ACME_SITE, organization_id: ACME, ...more },
    { origin: ACME_ORIGIN, cookie: cookie as string },
  );

/** A browser with a customer in two other organizations, and in a group of one of them. */
async function laptop(): Promise<{ cookie: string; ids: string[]; secret: string }> {
  const browser = new TestBrowser(service);
  const responses = [
    await browser.visit(AT_RIVAL, groupOfRival('a')),
    await browser.visit(AT_SHARED),
    await browser.visit(AT_RIVAL),
  ];
  const [last] = responses.slice(-1) as [TestResponse];
  return { cookie: browser.cookie as string, ids: responses.map(({ body }) => body.entity_id), secret: secretOf(last) };
}
const idsOf = async (cookie: string) => [
  await service.idOf(cookie, AT_RIVAL, groupOfRival('a')),
  await service.idOf(cookie, AT_SHARED),
  await service.idOf(cookie, AT_RIVAL),
];

/** The cookies of a browser after a customer of the other organization was transferred to it. */
async function pairOfRival(cookie: string): Promise<string> {
  const { access_token } = (await service.visit(undefined, AT_RIVAL)).body;
  const moved = await moveOf(service, access_token, { client_id: PUBLIC_SITE });
  const request = { cookie, body: { client_id: PUBLIC_SITE }, headers: { origin: PUBLIC_ORIGIN } };
  return cookieHeader(await remember(service, moved, request));
}

/** The two ways in which a device stays with the customer of a transfer. */
const KINDS = [
  {
    kind: 'browser',
    use: (moved: Move, body = {}, headers = {}) => remember(service, moved, { body, headers }),
    storedOf: (entityId: string): Promise<unknown[]> => transferredSessionsOf(service, entityId),
    invalid: 'cookie',
  },
  {
    kind: 'refresh_token',
    use: (moved: Move, body = {}, headers = {}) => stay(service, moved, body, headers),
    storedOf: (entityId: string): Promise<unknown[]> => refreshSessionsOf(service, entityId),
    invalid: 'token',
  },
];

describe.each(KINDS)(
  'protocol §4.5: a request with remember=$kind that is rejected',
  ({ kind, use, storedOf, invalid }) => {
    const reject = async (send: (moved: Move) => Promise<TestResponse>) => {
      const { entity_id, access_token } = await newCustomer(service);
      const moved = await move(access_token);
      const before = await identitiesOf(service).count();
      const response = await send(moved);
      expect(await identitiesOf(service).count()).toBe(before);
      expect(await storedOf(entity_id)).toEqual([]);
      expect((await use(moved)).status, 'the code is not redeemed').toBe(200);
      return response;
    };

    it('comes from a client without settings of the grant', async () => {
      const client_id = 'without-settings';
      const moved = await moveOf(service, (await newCustomer(service)).access_token, { client_id });
      expectError(await use(moved, { client_id }), UNAUTHORIZED);
      expect((await redeem(service, moved.code, { client_id, code_verifier: moved.verifier })).status).toBe(200);
    });

    it('has a code that was created without a code_challenge', async () => {
      const { entity_id, access_token } = await newCustomer(service);
      const code = await transferToken(service, access_token);
      expectInvalidRequest(await redeem(service, code, { remember: kind }, { origin: ACME_ORIGIN }), /^remember: /);
      expect(await storedOf(entity_id)).toEqual([]);
      expect((await redeem(service, code)).status).toBe(200);
    });

    it.each([
      ['the Origin of another client', {}, { origin: RIVAL_ORIGIN }, /^Origin: /],
      ['another value of remember', { remember: invalid }, {}, /^remember: /],
      ['a list of values', { remember: [kind] }, {}, /^remember: /],
      ['replace without remember', { remember: undefined, replace: true }, {}, /^replace: /],
      ['replace=false without remember', { remember: undefined, replace: false }, {}, /^replace: /],
      ['a replace that is no boolean', { replace: 'true' }, {}, /^replace: must be a boolean/],
    ])('has %s', async (_, more, headers, hint) => {
      expectInvalidRequest(await reject((moved) => use(moved, more, headers)), hint);
    });

    it('has a wrong verifier', async () => {
      expectInvalidGrant(await reject(({ code }) => use({ code, verifier: 'v'.repeat(43) })));
    });

    it('has no Origin for a browser, or has replace for a refresh token', async () => {
      const response = await reject((moved) =>
        kind === 'browser'
          ? redeem(service, moved.code, { code_verifier: moved.verifier, remember: kind })
          : use(moved, { replace: true }),
      );
      expectInvalidRequest(response, kind === 'browser' ? /^remember: / : /^replace: /);
    });
  },
);

describe.each(KINDS)('protocol §4.5: remember=$kind', ({ kind, use }) => {
  const laterToken = async (response: TestResponse): Promise<string> =>
    kind === 'browser'
      ? (await service.visit(cookieHeader(response), {}, SALES)).body.access_token
      : (await refreshCustomer(service, response.body.refresh_token)).body.access_token;

  it('has the group of the customer and a session of its own, and counts as one of 8 transfers in a chain', async () => {
    const { access_token } = (await service.visit(undefined, {}, SALES)).body;
    const first = await use(await move(access_token));
    let token = await laterToken(first);
    const { gen, sid } = claimsOf(access_token);
    const ofDevice = { gen, sid: claimsOf(first.body.access_token).sid, ep: 0, group_id: 'sales' };
    expect(ofDevice.sid).not.toBe(sid);
    for (const each of [first.body.access_token, token]) expect(claimsOf(each)).toMatchObject(ofDevice);
    for (let depth = 2; depth <= 8; depth++) token = await laterToken(await use(await move(token)));
    expectInvalidGrant(await service.post(TRANSFER, transferBody(), bearer(token)));
  });
});

describe('protocol §4.5: the response with remember', () => {
  it('responds as without it and sets the cookies of a new browser, which leads to the customer from then on', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const plain = await redeem(service, await transferToken(service, access_token));
    const response = await remember(service, await move(access_token));
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ ...plain.body, access_token: expect.any(String) });
    expect(response.cookies).toHaveLength(2);
    expect(response.cookies[0]).toMatch(/^__svc_cid=[\w-]{36}; Max-Age=63072000; Path=\/v2\/customer; Domain=/);
    expect(cookieValue(response.cookies[0])).toBe(entity_id);
    const again = await service.visit(cookieHeader(response));
    expect(again.body.entity_id).toBe(entity_id);
    expect(secretOf(again)).toBe(secretOf(response));
  });

  it('responds as without it and with a refresh token, and sets no cookie', async () => {
    const { access_token } = await newCustomer(service);
    const plain = await redeem(service, await transferToken(service, access_token));
    const response = await stay(service, await move(access_token));
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      ...plain.body,
      access_token: expect.any(String),
      refresh_token: expect.stringMatching(/^dev:[\w-]{22}\.[\w-]{43}$/),
    });
    expect(response.cookies).toEqual([]);
  });

  it('costs a returning customer one SELECT and no write, except for the first call of a day', async () => {
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT']);
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now() + 86_400_000);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'UPDATE']);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT']);
  });
});

describe('protocol §5.6: a browser that remembers a customer', () => {
  it('has a new secret and leads to its earlier customers too, and the earlier pair leads where it led before', async () => {
    const { cookie, ids, secret } = await laptop();
    const moved = await newCustomer(service);
    const moving = await move(moved.access_token);
    const response = await remember(service, moving, { cookie });
    expect(secretOf(response)).not.toBe(secret);
    let pair = cookieHeader(response);
    for (const _round of [1, 2]) {
      expect(await idsOf(pair)).toEqual(ids);
      pair = cookieHeader(await service.visit(pair, AT_RIVAL));
      expect(await service.idOf(pair)).toBe(moved.entity_id);
    }
    expect((await service.visit(pair)).cookies.join()).toContain(secretOf(response));
    expect(await idsOf(cookie)).toEqual(ids);
    const own = await service.idOf(cookie);
    expect(own).not.toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(own);
    const stored = await everythingIn(service);
    for (const text of [/__svc_cst=\w{32}(\w{64})/.exec(pair)?.[1], moving.code]) expect(stored).not.toContain(text);
  });

  it('needs replace=true for another customer, and an identity_conflict does not redeem the code', async () => {
    const known = await service.visit();
    const cookie = cookieHeader(known);
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    for (const body of [{}, { replace: false }]) {
      const conflict = await remember(service, move, { cookie, body });
      expectError(conflict, { status: 409, error: 'identity_conflict', hint: /^replace: / });
    }
    expect(await transferredSessionsOf(service, moved.entity_id)).toEqual([]);
    const response = await remember(service, move, { cookie, body: { replace: true } });
    expect(response.status).toBe(200);
    expect(await service.idOf(cookieHeader(response))).toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(known.body.entity_id);
  });

  it('keeps its secret and its session if it leads to the customer already, and the code is used up', async () => {
    const known = await service.visit();
    const cookie = cookieHeader(known);
    const moved = await moveOf(service, known.body.access_token);
    const before = await rows();
    const response = await remember(service, moved, { cookie });
    expect(response).toMatchObject({ status: 200, body: { entity_id: known.body.entity_id } });
    expect(secretOf(response)).toBe(secretOf(known));
    expect(await rows(), 'no browser and no session is added').toEqual(before);
    const again = await service.visit(cookieHeader(response));
    expect(claimsOf(again.body.access_token).sid).toBe(claimsOf(known.body.access_token).sid);
    expect(claimsOf(response.body.access_token).sid).not.toBe(claimsOf(known.body.access_token).sid);
    await ageRedemption(service, moved.code, 3);
    expectInvalidGrant(await remember(service, moved, { cookie }));
    expect(await infoStatus(service, response.body.access_token), 'its token ends with a replay').toBe(401);
    expect(await infoStatus(service, again.body.access_token)).toBe(200);
    expect(await service.idOf(cookie)).toBe(known.body.entity_id);
  });

  it('needs no replace for a customer of another group, and the other groups stay with the earlier pair', async () => {
    const known = await service.visit();
    const cookie = cookieHeader(known);
    const inGroup = (await service.post(group('a'), cookieBody())).body;
    const pair = await rememberedPair(service, inGroup.access_token, cookie);
    expect(await service.idOf(pair, {}, group('a'))).toBe(inGroup.entity_id);
    expect(await service.idOf(pair)).not.toBe(known.body.entity_id);
    expect(await service.idOf(cookie)).toBe(known.body.entity_id);
    expect(await service.idOf(cookie, {}, group('a'))).not.toBe(inGroup.entity_id);
  });

  it('counts as one without customers if it sends a wrong secret', async () => {
    const known = await service.visit();
    const [wrong, { entity_id }] = ['0'.repeat(64), known.body];
    const tag = createHmac('sha256', wrong).update(entity_id).digest('hex').slice(0, 16);
    const cookie = `__svc_cid=${entity_id}; __svc_cst=${secretOf(known).slice(0, 32)}${wrong}${tag}`;
    const moved = await newCustomer(service);
    expect(await service.idOf(await rememberedPair(service, moved.access_token, cookie))).toBe(moved.entity_id);
  });

  it('takes the 20 customers of other organizations that were seen last, and leaves the rest to the earlier pair', async () => {
    const browser = new TestBrowser(service);
    const clock = vi.spyOn(service.clock, 'now');
    const start = Date.now();
    const ids: string[] = [];
    for (let at = 0; at < 23; at++) {
      clock.mockReturnValue(start + (23 - at) * 86_400_000);
      ids.push((await browser.visit(AT_RIVAL, groupOfRival(`g${at}`))).body.entity_id);
    }
    clock.mockRestore();
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token, browser.cookie);
    const at = (cookie: string | undefined, index: number) =>
      service.idOf(cookie as string, AT_RIVAL, groupOfRival(`g${index}`));
    expect([await at(pair, 0), await at(pair, 19)]).toEqual([ids[0], ids[19]]);
    for (const index of [20, 21, 22]) expect(await at(pair, index)).not.toBe(ids[index]);
    for (const index of [0, 19, 22]) expect(await at(browser.cookie, index)).toBe(ids[index]);
  });

  it('takes a session as old as it is: the end of a later token does not end the copy', async () => {
    const first = await service.visit();
    const { entity_id } = first.body;
    const earlier = await rememberedPair(service, first.body.access_token);
    service.clock.advance({ seconds: 3_600 });
    const later = (await service.visit(cookieHeader(first))).body.access_token;
    service.clock.advance({ seconds: 3_600 });
    const pair = await pairOfRival(earlier);
    expect((await service.send('DELETE', TOKEN, bearer(later))).status).toBe(200);
    expect([await service.idOf(earlier), await service.idOf(pair)]).toEqual([entity_id, entity_id]);
  });

  it('takes the customer of another organization, although groups of its own organization were seen later', async () => {
    const browser = new TestBrowser(service);
    const clock = vi.spyOn(service.clock, 'now');
    clock.mockReturnValue(Date.now() - 86_400_000);
    const ofRival = (await browser.visit(AT_RIVAL)).body.entity_id;
    clock.mockRestore();
    for (let at = 0; at < 25; at++) await browser.visit({}, group(`h${at}`));
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token, browser.cookie);
    expect(await service.idOf(pair, AT_RIVAL)).toBe(ofRival);
  });

  it.each<[string, (token: string, agentPath: string) => Promise<unknown>]>([
    ['the token that created the transfer has ended', (token) => service.send('DELETE', '/v2/token', bearer(token))],
    [
      'the agent that created the transfer has got a new password',
      (_, path) => service.admin('PATCH', path, { password: 'another long password' }),
    ],
    ['the agent that created the transfer was deleted', (_, path) => service.admin('DELETE', path)],
  ])('takes no customer of the earlier browser whose session has ended because %s', async (_, end) => {
    const { email, path } = await newAgent(service);
    const token = await issueAgentToken(service, { email });
    const { entity_id } = await newCustomer(service);
    const byAgent = await moveOf(service, token, { bearer_type: 'agent', customer_id: entity_id });
    const pair = cookieHeader(await remember(service, byAgent));
    const copy = await pairOfRival(pair);
    expect(await service.idOf(copy), 'a session that has not ended is copied').toBe(entity_id);
    expect(await transferredSessionsOf(service, entity_id)).toHaveLength(2);
    expect(await end(token, path)).toMatchObject({ status: 200 });
    await pairOfRival(pair);
    expect(await transferredSessionsOf(service, entity_id)).toHaveLength(2);
    expect(await service.idOf(copy)).not.toBe(entity_id);
  });

  it('is one of 20 that race for one code, and the others leave no row', async () => {
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    const before = await identitiesOf(service).count();
    const browsersBefore = await rowCountIn('browser');
    delaySelects(service);
    const winner = winnerOf(await times(20, () => remember(service, move)));
    expect(await service.idOf(cookieHeader(winner))).toBe(moved.entity_id);
    expect(await transferredSessionsOf(service, moved.entity_id)).toHaveLength(1);
    expect(await identitiesOf(service).count()).toBe(before);
    expect(await rowCountIn('browser')).toBe(browsersBefore + 1);
  });

  it('leads to its own customer after each of several codes that race into one browser', async () => {
    const { cookie, ids } = await laptop();
    const moved = await Promise.all([newCustomer(service), newCustomer(service), newCustomer(service)]);
    const moves = await Promise.all(moved.map(({ access_token }) => moveOf(service, access_token)));
    const responses = await Promise.all(moves.map((move) => remember(service, move, { cookie })));
    for (const [index, response] of responses.entries()) {
      expect(response.status).toBe(200);
      expect(await service.idOf(cookieHeader(response))).toBe(moved[index]?.entity_id);
      expect(await idsOf(cookieHeader(response))).toEqual(ids);
    }
  });

  it('still leads to its own customer after the token that created the transfer has ended', async () => {
    const known = await service.visit();
    const moved = await move(known.body.access_token);
    const pair = cookieHeader(await remember(service, moved, { cookie: cookieHeader(known) }));
    await ageRedemption(service, moved.code, 10);
    expectInvalidGrant(await remember(service, moved));
    expect((await endToken(known.body.access_token)).status).toBe(200);
    expect(await service.idOf(pair)).toBe(known.body.entity_id);
  });

  it('still leads to a customer that it got after its own one was forgotten', async () => {
    const browser = new TestBrowser(service);
    await browser.visit({}, SALES);
    await browser.visit();
    await forget(browser.cookie, { group_id: 'sales' });
    const next = (await browser.visit({}, SALES)).body;
    const pair = await rememberedPair(service, next.access_token, browser.cookie);
    await endToken(next.access_token);
    expect(await service.idOf(pair, {}, SALES)).toBe(next.entity_id);
  });

  it('loses a transferred customer with the token that created its transfer, although a later one reached it', async () => {
    const phone = await newCustomer(service);
    const first = await rememberedPair(service, phone.access_token);
    const second = await rememberedPair(service, phone.access_token, first);
    await endToken(phone.access_token);
    expect(await service.idOf(second)).not.toBe(phone.entity_id);
  });

  it('needs replace=true for a customer that a parallel request creates, and the conflict leaves the code usable', async () => {
    const browser = new TestBrowser(service);
    await browser.visit({}, SALES);
    const { cookie = '' } = browser;
    const moved = await newCustomer(service);
    const moving = await move(moved.access_token);
    let created = '';
    atNextTransaction(service, 'before', async () => {
      created = await service.idOf(cookie);
    });
    const before = await rows();
    const conflict = await remember(service, moving, { cookie });
    expectError(conflict, { status: 409, error: 'identity_conflict', hint: /^replace: / });
    const ofParallelRequest = [1, 0, 1];
    expect(await rows()).toEqual(before.map((count, table) => count + (ofParallelRequest[table] as number)));
    const response = await remember(service, moving, { cookie, body: { replace: true } });
    expect(await service.idOf(cookieHeader(response))).toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(created);
  });

  it('leaves a customer that a parallel request creates in another organization to the earlier pair', async () => {
    const cookie = cookieHeader(await service.visit());
    const moving = await move();
    let created = '';
    atNextTransaction(service, 'before', async () => {
      created = await service.idOf(cookie, AT_RIVAL);
    });
    const response = await remember(service, moving, { cookie, body: { replace: true } });
    expect(await service.idOf(cookie, AT_RIVAL)).toBe(created);
    expect(await service.idOf(cookieHeader(response), AT_RIVAL)).not.toBe(created);
  });

  it('gets no customer that the earlier browser is made to forget during the request', async () => {
    const browser = new TestBrowser(service);
    const ofRival = (await browser.visit(AT_RIVAL)).body.entity_id;
    const moved = await newCustomer(service);
    const statuses: number[] = [];
    const forgetRival = () => service.post('/v2/customer/forget', AT_RIVAL, { cookie: browser.cookie as string });
    atNextTransaction(service, 'before', async () => statuses.push((await forgetRival()).status));
    const pair = await rememberedPair(service, moved.access_token, browser.cookie);
    expect(statuses).toEqual([200]);
    expect(await service.idOf(pair)).toBe(moved.entity_id);
    expect(await service.idOf(pair, AT_RIVAL)).not.toBe(ofRival);
  });
});

describe('protocol §5.6: a transaction that fails while a device remembers a customer', () => {
  it('leaves no row and a usable code, at whichever statement, and responds with 503', async () => {
    const browser = new TestBrowser(service);
    await browser.visit(AT_RIVAL);
    const moved = await move();
    const before = await rows();
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      const { status } = await remember(service, moved, { cookie: browser.cookie });
      expect(status).toBe(hasFailed() ? 503 : 200);
      if (hasFailed()) expect(await rows()).toEqual(before);
    });
    expect(errors).toBeGreaterThan(2 * TABLES.length);
    expect(await rows()).toEqual(before.map((count, table) => count + (ADDED_ROWS[table] as number)));
  });

  it('leaves no session with a refresh token, at whichever statement, and responds with 503', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      expect((await stay(service, moved)).status).toBe(hasFailed() ? 503 : 200);
      expect(await refreshSessionsOf(service, entity_id)).toHaveLength(hasFailed() ? 0 : 1);
    });
    expect(errors).toBe(2 * STATEMENTS_OF_REFRESH_SESSION.length);
  });

  it.each(KINDS)(
    'may have stored the device if only the response to the COMMIT is lost: 503 for remember=$kind',
    async (each) => {
      const { entity_id, access_token } = await newCustomer(service);
      const moved = await move(access_token);
      atNextTransaction(service, 'after', () => Promise.reject(LOST_RESPONSE));
      expectUnavailable(await each.use(moved));
      expect(await each.storedOf(entity_id)).toHaveLength(1);
      expectInvalidGrant(await each.use(moved));
      expect((await each.use(await move(access_token))).status).toBe(200);
    },
  );

  it('leaves no row if another request has redeemed the code, whose token the replay ends', async () => {
    const moved = await move();
    const before = await rows();
    let token = '';
    atNextTransaction(service, 'before', async () => {
      const first = { code_verifier: moved.verifier };
      token = (await redeem(service, moved.code, first, from('203.0.113.9'))).body.access_token;
      expect(await infoStatus(service, token)).toBe(200);
    });
    expectInvalidGrant(await remember(service, moved));
    const ofCode = [0, 0, 1];
    expect(await rows()).toEqual(before.map((count, table) => count - (ofCode[table] as number)));
    expect(await infoStatus(service, token)).toBe(401);
  });
});

describe('protocol §5.6: the statements of a redemption with remember=browser, without BEGIN and COMMIT,', () => {
  /** The command and the table of each statement. */
  async function sentBy(moved: Move, cookie?: string, body: object = {}): Promise<string[]> {
    const texts = await statementTextsOf(service, async () => {
      expect((await remember(service, moved, { cookie, body })).status).toBe(200);
    });
    return texts.map((text) => {
      const [, table] = /.*(?:UPDATE|INTO|FROM)\s+["`]?(\w+)/s.exec(text) ?? [];
      return `${text.split(/\s/)[0]} ${table}`;
    });
  }
  const CODE = 'SELECT session';
  /** The earlier browser, with its customers in all organizations. */
  const EARLIER = 'SELECT browser';
  /** The customer’s row, which orders its transactions, then its sessions, which the bounds count. */
  const CUSTOMER = ['UPDATE customer', 'SELECT session'];
  const BROWSER = 'INSERT browser';
  /** The transfer token becomes the session of the browser. */
  const REDEMPTION = 'UPDATE session';

  it('are 5 on a device without cookies', async () => {
    expect(await sentBy(await move())).toEqual([CODE, ...CUSTOMER, BROWSER, REDEMPTION]);
  });

  it('are 3 in a browser that leads to the customer already', async () => {
    const known = await service.visit();
    const moved = await move(known.body.access_token);
    expect(await sentBy(moved, cookieHeader(known))).toEqual([CODE, EARLIER, REDEMPTION]);
  });

  it('are 6 in a browser whose customer is replaced', async () => {
    const cookie = cookieHeader(await service.visit());
    const sent = await sentBy(await move(), cookie, { replace: true });
    expect(sent).toEqual([CODE, EARLIER, ...CUSTOMER, BROWSER, REDEMPTION]);
  });

  it('are 2 more without replace, which find a customer that a parallel request creates', async () => {
    const cookie = cookieHeader(await service.visit(undefined, {}, SALES));
    const [first, second] = CUSTOMER as [string, string];
    const check = ['UPDATE browser', 'SELECT session'];
    const sent = await sentBy(await move(), cookie);
    expect(sent).toEqual([CODE, EARLIER, first, ...check, second, BROWSER, REDEMPTION]);
  });

  it.each([1, 2, 3])('are one more, and 3 more for each customer of another organization: %i', async (count) => {
    const browser = new TestBrowser(service);
    for (let at = 0; at < count; at++) await browser.visit(AT_RIVAL, groupOfRival(`g${at}`));
    const copies = Array(count).fill(['SELECT session', 'INSERT session']).flat();
    const sent = await sentBy(await move(), browser.cookie, { replace: true });
    const customers = Array(count).fill('UPDATE customer');
    const copied = ['SELECT session', ...copies];
    expect(sent).toEqual([CODE, EARLIER, ...customers, ...CUSTOMER, BROWSER, ...copied, REDEMPTION]);
  });
});

describe('protocol §3.10: the sessions of a customer that a further device reads', () => {
  it.each<[string, (token: string) => Promise<unknown>]>([
    ['the token that created the transfers', (token) => endToken(token)],
    ['the sessions', (token) => endSessions(service, token)],
  ])('do not include those that ended with the end of %s', async (_, end) => {
    const browser = new TestBrowser(service);
    const { entity_id, access_token } = (await browser.visit()).body;
    for (let at = 0; at < 3; at++) await rememberedPair(service, access_token);
    expect(await transferredSessionsOf(service, entity_id)).toHaveLength(3);
    await end(access_token);
    expect(await transferredSessionsOf(service, entity_id)).toEqual([]);
    const pair = await rememberedPair(service, (await browser.visit()).body.access_token);
    const browsers = (await transferredSessionsOf(service, entity_id)).map(({ browserId }) => browserId);
    expect(browsers).toEqual([browserIdIn(pair)]);
  });

  it.runIf(!onMariadb)('are found by the index of the customer', async () => {
    const explained = await serviceOfTest({ registry });
    const moved = await moveOf(explained, (await newCustomer(explained)).access_token);
    const cookie = cookieHeader(await explained.visit(undefined, {}, SALES));
    const texts = await statementTextsOf(explained, () => remember(explained, moved, { cookie }));
    const reads = texts.filter((sql) => sql.includes('FROM session WHERE customer_id'));
    expect(reads).toHaveLength(1);
    for (const sql of reads) {
      const plan: { detail: string }[] = await explained.application
        .get(DataSource)
        .query(`EXPLAIN QUERY PLAN ${sql.replaceAll('?', "'x'")}`);
      expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('session_customer_id (customer_id=?')]);
    }
  });
});

it('protocol §2.14: the limit of new identities counts each browser that remembers a customer, and a request beyond the limit does not redeem the code', async () => {
  const environment = { RATE_LIMIT: 'identities=2/60' };
  const limited = await serviceOfTest({ registry, environment });
  beginWindow(limited);
  const { access_token } = await newCustomer(limited);
  const moves = [await moveOf(limited, access_token), await moveOf(limited, access_token)] as const;
  expect((await remember(limited, moves[0])).status).toBe(200);
  expectLimited(await remember(limited, moves[1]));
  limited.clock.advance({ seconds: 61 });
  expect((await remember(limited, moves[1])).status).toBe(200);
});

describe('protocol §4.5: the session of remember=refresh_token', () => {
  it('is named by its access token, has hashes only, and has an audit event with the customer', async () => {
    const { entity_id, access_token, refresh_token } = await stayOf(service);
    const [session, ...more] = await refreshSessionsOf(service, entity_id);
    expect(more).toEqual([]);
    expect(claimsOf(access_token).sid).toBe(session?.id);
    for (const part of refresh_token.slice('dev:'.length).split('.'))
      expect(await everythingIn(service)).not.toContain(part);
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.issued').slice(-1);
    expect(event).toMatchObject({ subject: { kind: 'customer', id: entity_id }, details: { session: session?.id } });
  });

  it('does not end with the access token that was given with it, and ends with the agent that created the transfer', async () => {
    const agent = await issueAgentToken(service);
    const { entity_id } = await newCustomer(service);
    const moved = await stayOf(service, agent, { bearer_type: 'agent', customer_id: entity_id });
    expect((await endToken(moved.access_token)).status).toBe(200);
    const later = (await refreshCustomer(service, moved.refresh_token)).body;
    expect(claimsOf(later.access_token).act).toMatchObject({ sub: claimsOf(agent).sub });
    expect((await service.send('DELETE', '/v2/token', bearer(agent))).status).toBe(200);
    expectInvalidGrant(await refreshCustomer(service, later.refresh_token));
    expect(await infoStatus(service, later.access_token)).toBe(401);
  });

  it('is stored by the redemption, in a transaction that first changes the customer', async () => {
    const moved = await move();
    const sent = await statementsOf(service, () => stay(service, moved));
    expect(sent).toEqual(['SELECT', ...STATEMENTS_OF_REFRESH_SESSION]);
  });

  it.each([
    ['is not listed with the value', 'only-browsers'],
    ['does not list the grant refresh_token', 'without-refresh'],
    ['has no grant_types', 'without-grant-types'],
  ])('is not for a client that %s', async (_, client_id) => {
    const moved = await moveOf(service, (await newCustomer(service)).access_token, { client_id });
    expectError(await stay(service, moved, { client_id }), UNAUTHORIZED);
    expect((await redeem(service, moved.code, { client_id, code_verifier: moved.verifier })).status).toBe(200);
  });
});

describe('protocol §3.7: a code that gave a customer a refresh token', () => {
  const NETWORK = from('203.0.113.7');

  it.each([
    ['ends nothing if it is sent again at once from the same network', 0, '203.0.113.7', 200],
    ['ends the session if it is sent again after 3 s', 3, '203.0.113.7', 400],
    ['ends the session if it is sent again from another network', 0, '203.0.113.8', 400],
  ])('%s', async (_, seconds, ip, status) => {
    const moved = await move();
    const first = (await stay(service, moved, {}, NETWORK)).body;
    const later = (await refreshCustomer(service, first.refresh_token, {}, NETWORK)).body;
    if (seconds > 0) await ageRedemption(service, moved.code, seconds);
    expectInvalidGrant(await stay(service, moved, {}, from(ip)));
    expect((await refreshCustomer(service, later.refresh_token, {}, NETWORK)).status).toBe(status);
    for (const { access_token } of [first, later])
      expect(await infoStatus(service, access_token)).toBe(status === 200 ? 200 : 401);
  });

  it('gives one session when 20 exchanges race', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const winner = winnerOf(await times(20, () => stay(service, moved, {}, NETWORK)));
    expect(await refreshSessionsOf(service, entity_id)).toHaveLength(1);
    expect((await refreshCustomer(service, winner.body.refresh_token, {}, NETWORK)).status).toBe(200);
  });
});
