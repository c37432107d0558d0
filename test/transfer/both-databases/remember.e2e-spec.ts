import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { BrowserLink } from '../../../src/identity/browser-link.entity.js';
import { partsOf } from '../../../src/identity/identity-cookies.js';
import { sha256 } from '../../../src/platform/secret.js';
import { claimsOf, newAgent } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { familiesOf, refreshCustomer, refreshingRegistry, stay, stayOf } from '../../support/customer-refresh.js';
import {
  atLockOfBrowser,
  atNextTransaction,
  failAtEachStatement,
  LOST_RESPONSE,
  OUTAGE,
} from '../../support/dying-transactions.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest, expectLimited } from '../../support/expect-error.js';
import { cookieValue, identitiesOf, secretOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { times, winnerOf } from '../../support/races.js';
import { linksOf, type Move, moveOf, remember, rememberedPair } from '../../support/remember.js';
import { delaySelects, statementsOf, statementTextsOf } from '../../support/statements.js';
import { ACME, ACME_ORIGIN, ACME_SITE, AT_RIVAL, PUBLIC_SITE, RIVAL_ORIGIN } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import {
  ageRedemption,
  codesOf,
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
const TABLES = ['customer', 'browser', 'browser_customer', 'link_ancestor'];
/** A browser with the transferred customer and the one of the earlier browser; the bearer and the redemption. */
const ADDED_ROWS = [0, 1, 2, 2];
const UNAUTHORIZED = { status: 400, error: 'unauthorized_client', hint: /^remember: / };
const STATEMENTS_OF_FAMILY = ['UPDATE', 'UPDATE', ...Array(4).fill('SELECT'), 'INSERT', 'INSERT'];

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
const links = () => service.rowsOf(BrowserLink);
const pairOf = (cookie: string) => partsOf(cookie.split('__svc_cst=')[1] as string);
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

/** A browser with a customer in two groups and in another organization, but not outside of the groups. */
async function laptop(): Promise<{ cookie: string; ids: string[]; secret: string }> {
  const browser = new TestBrowser(service);
  const responses = [
    await browser.visit({}, group('a')),
    await browser.visit({}, group('b')),
    await browser.visit(AT_RIVAL),
  ];
  const [last] = responses.slice(-1) as [TestResponse];
  return { cookie: browser.cookie as string, ids: responses.map(({ body }) => body.entity_id), secret: secretOf(last) };
}
const idsOf = async (cookie: string) => [
  await service.idOf(cookie, {}, group('a')),
  await service.idOf(cookie, {}, group('b')),
  await service.idOf(cookie, AT_RIVAL),
];

/** The two ways in which a device stays with the customer of a transfer. */
const KINDS = [
  {
    kind: 'browser',
    use: (moved: Move, body = {}, headers = {}) => remember(service, moved, { body, headers }),
    storedOf: (entityId: string): Promise<unknown[]> => linksOf(service, entityId),
    invalid: 'cookie',
  },
  {
    kind: 'refresh_token',
    use: (moved: Move, body = {}, headers = {}) => stay(service, moved, body, headers),
    storedOf: (entityId: string): Promise<unknown[]> => familiesOf(service, entityId),
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

  it('has the group of the customer and the depth of the chain of transfers', async () => {
    const { access_token } = (await service.visit(undefined, {}, SALES)).body;
    const first = await use(await move(access_token));
    let token = await laterToken(first);
    const { jti } = claimsOf(access_token);
    for (const each of [first.body.access_token, token])
      expect(claimsOf(each)).toMatchObject({ transfers: 1, gen: 0, group_id: 'sales' });
    const { ancestors } = claimsOf(token) as { ancestors: string[] };
    expect(ancestors[0]).toBe(jti);
    if (kind === 'browser') expect(String(claimsOf(first.body.access_token).jti)).toContain(`${ancestors[1]}.`);
    for (let depth = 2; depth <= 8; depth++) token = await laterToken(await use(await move(token)));
    expect(claimsOf(token).transfers).toBe(8);
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

  it('costs a returning customer two SELECTs and no write, except for the first call of a day', async () => {
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'SELECT']);
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now() + 86_400_000);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'SELECT', 'UPDATE']);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'SELECT']);
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
    for (const text of [pair.slice(-64), moving.code]) expect(stored).not.toContain(text);
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
    expect(await linksOf(service, moved.entity_id)).toEqual([]);
    const response = await remember(service, move, { cookie, body: { replace: true } });
    expect(response.status).toBe(200);
    expect(await service.idOf(cookieHeader(response))).toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(known.body.entity_id);
  });

  it('needs no replace for the customer that it has already, or for one of another group or organization', async () => {
    const known = await service.visit();
    const cookie = cookieHeader(known);
    const pair = await rememberedPair(service, known.body.access_token, cookie);
    expect(await service.idOf(pair)).toBe(known.body.entity_id);
    const inGroup = (await service.post(group('a'), cookieBody())).body;
    const both = await rememberedPair(service, inGroup.access_token, pair);
    expect([await service.idOf(both), await service.idOf(both, {}, group('a'))]).toEqual([
      known.body.entity_id,
      inGroup.entity_id,
    ]);
  });

  it('counts as one without customers if it sends a wrong secret', async () => {
    const cookie = `${cookieHeader(await service.visit()).slice(0, -64)}${'0'.repeat(64)}`;
    const moved = await newCustomer(service);
    expect(await service.idOf(await rememberedPair(service, moved.access_token, cookie))).toBe(moved.entity_id);
  });

  it('takes the 20 customers of an organization that were seen last, and leaves the others to the earlier pair', async () => {
    const browser = new TestBrowser(service);
    const clock = vi.spyOn(service.clock, 'now');
    const start = Date.now();
    const ids: string[] = [];
    for (let at = 0; at < 23; at++) {
      clock.mockReturnValue(start + (23 - at) * 86_400_000);
      ids.push((await browser.visit({}, group(`g${at}`))).body.entity_id);
    }
    clock.mockRestore();
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token, browser.cookie);
    const at = (cookie: string | undefined, index: number) => service.idOf(cookie as string, {}, group(`g${index}`));
    expect([await at(pair, 0), await at(pair, 19)]).toEqual([ids[0], ids[19]]);
    for (const index of [20, 21, 22]) expect(await at(pair, index)).not.toBe(ids[index]);
    expect(await at(browser.cookie, 22)).toBe(ids[22]);
  });

  it('takes the customer of another organization, although groups of one organization were seen later', async () => {
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
  ])('takes no customer of the earlier browser whose link has ended because %s', async (_, end) => {
    const { email, path } = await newAgent(service);
    const token = await issueAgentToken(service, { email });
    const { entity_id } = await newCustomer(service);
    const byAgent = await moveOf(service, token, { bearer_type: 'agent', customer_id: entity_id });
    const pair = cookieHeader(await remember(service, byAgent));
    const inGroup = async () => (await service.visit(undefined, {}, group('a'))).body.access_token;
    await rememberedPair(service, await inGroup(), pair);
    expect(await linksOf(service, entity_id), 'a link that has not ended is copied').toHaveLength(2);
    expect(await end(token, path)).toMatchObject({ status: 200 });
    await rememberedPair(service, await inGroup(), pair);
    expect(await linksOf(service, entity_id)).toHaveLength(2);
  });

  it('is one of 20 that race for one code, and the others leave no row', async () => {
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    const before = await identitiesOf(service).count();
    const browsersBefore = await rowCountIn('browser');
    delaySelects(service);
    const winner = winnerOf(await times(20, () => remember(service, move)));
    expect(await service.idOf(cookieHeader(winner))).toBe(moved.entity_id);
    expect(await linksOf(service, moved.entity_id)).toHaveLength(1);
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

  it('loses a transferred customer with the transfer, although the browser led to it by an earlier transfer', async () => {
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
    const ofParallelRequest = [1, 0, 1, 0];
    expect(await rows()).toEqual(before.map((count, table) => count + (ofParallelRequest[table] as number)));
    const response = await remember(service, moving, { cookie, body: { replace: true } });
    expect(await service.idOf(cookieHeader(response))).toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(created);
  });

  it.runIf(onMariadb)('leads to a customer that a parallel request creates for the earlier browser', async () => {
    const cookie = cookieHeader(await service.visit());
    const moving = await move();
    let created = '';
    atLockOfBrowser(service, async () => {
      created = await service.idOf(cookie, {}, SALES);
    });
    const response = await remember(service, moving, { cookie, body: { replace: true } });
    expect(await service.idOf(cookie, {}, SALES)).toBe(created);
    expect(await service.idOf(cookieHeader(response), {}, SALES)).toBe(created);
  });

  it('gets no customer that the earlier browser is made to forget during the request', async () => {
    const browser = new TestBrowser(service);
    const sales = (await browser.visit({}, SALES)).body.entity_id;
    const moved = await newCustomer(service);
    const statuses: number[] = [];
    atNextTransaction(service, 'before', async () => statuses.push((await forget(browser.cookie)).status));
    const pair = await rememberedPair(service, moved.access_token, browser.cookie);
    expect(statuses).toEqual([200]);
    expect(await service.idOf(pair)).toBe(moved.entity_id);
    expect(await service.idOf(pair, {}, SALES)).not.toBe(sales);
  });
});

describe('protocol §5.6: a transaction that fails while a device remembers a customer', () => {
  it('leaves no row and a usable code, at whichever statement, and responds with 503', async () => {
    const browser = new TestBrowser(service);
    await browser.visit({}, SALES);
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

  it('leaves no refresh family, at whichever statement, and responds with 503', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      expect((await stay(service, moved)).status).toBe(hasFailed() ? 503 : 200);
      expect(await familiesOf(service, entity_id)).toHaveLength(hasFailed() ? 0 : 1);
    });
    expect(errors).toBe(2 * STATEMENTS_OF_FAMILY.length);
  });

  it.each(KINDS)('has the effect of a response if only that of the COMMIT is lost: remember=$kind', async (each) => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    atNextTransaction(service, 'after', () => Promise.reject(LOST_RESPONSE));
    const { status, body } = await each.use(moved);
    expect(status).toBe(200);
    expect(await infoStatus(service, body.access_token)).toBe(200);
    expect(await each.storedOf(entity_id)).not.toEqual([]);
  });

  it('leaves no row if another attempt has redeemed the code, whose gift a replay ends', async () => {
    const moved = await move();
    const before = await rows();
    atNextTransaction(service, 'before', () => {
      const consumed = { consumedBy: 'the first use', consumedAt: new Date(Date.now() - 60_000) };
      return codesOf(service).update({ hash: sha256(moved.code) }, consumed);
    });
    expectInvalidGrant(await remember(service, moved));
    expect(await rows()).toEqual(before);
    expect(await service.rowsOf(Revocation).countBy({ value: 'the first use' })).toBe(1);
  });
});

describe('protocol §3.10: the links of a customer that a further device reads', () => {
  it('include no idle link when the live links of one root are counted', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const pairs: string[] = [];
    for (let at = 0; at < 10; at++) pairs.push(await rememberedPair(service, access_token));
    const sibling = (await service.visit(pairs[0] as string)).body.access_token;
    const later = await moveOf(service, sibling);
    expect((await remember(service, later)).status).toBe(429);
    const { browserId } = pairOf(pairs[5] as string);
    await links().update({ entityId: entity_id, browserId }, { seenDay: 0 });
    expect((await remember(service, later)).status).toBe(200);
  });

  it.each<[string, (token: string) => Promise<unknown>]>([
    ['the token that created the transfers', (token) => endToken(token)],
    ['the sessions', (token) => endSessions(service, token)],
  ])('do not include those that the end of %s has ended: their rows end', async (_, end) => {
    const browser = new TestBrowser(service);
    const { entity_id, access_token } = (await browser.visit()).body;
    for (let at = 0; at < 3; at++) await rememberedPair(service, access_token);
    await end(access_token);
    expect(await linksOf(service, entity_id)).toHaveLength(3);
    const pair = await rememberedPair(service, (await browser.visit()).body.access_token);
    const [link, ...others] = await linksOf(service, entity_id);
    expect([link?.browserId, others]).toEqual([pairOf(pair).browserId, []]);
  });

  it.runIf(!onMariadb)('are found by an index without those of sign-ins', async () => {
    const explained = await serviceOfTest({ registry });
    const moved = await moveOf(explained, (await newCustomer(explained)).access_token);
    const cookie = cookieHeader(await explained.visit(undefined, {}, SALES));
    const texts = await statementTextsOf(explained, () => remember(explained, moved, { cookie }));
    const reads = texts.filter((sql) => sql.includes('organization_id = customer.organization_id'));
    expect(reads).toHaveLength(3);
    for (const sql of reads) {
      const plan: { detail: string }[] = await explained.application
        .get(DataSource)
        .query(`EXPLAIN QUERY PLAN ${sql.replaceAll('?', "'x'")}`);
      const [read] = plan.filter(({ detail }) => detail.includes('browser_customer_of_customer'));
      expect(read?.detail).toContain('(entity_id=? AND organization_id=? AND origin=?');
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

describe('protocol §4.5: the refresh family of remember=refresh_token', () => {
  it('has the id of the redemption, hashes only, and an audit event with the customer and the family', async () => {
    const { entity_id, access_token, refresh_token } = await stayOf(service);
    const [family, ...more] = await familiesOf(service, entity_id);
    expect(more).toEqual([]);
    expect(String(claimsOf(access_token).jti).startsWith(`${family?.id}.`)).toBe(true);
    expect(JSON.stringify(family)).not.toContain(refresh_token.slice(4));
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.issued').slice(-1);
    expect(event).toMatchObject({ subject: { kind: 'customer', id: entity_id }, details: { family: family?.id } });
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

  it('is stored with the redemption and its ancestors in one transaction, which first changes the customer', async () => {
    const moved = await move();
    const sent = await statementsOf(service, () => stay(service, moved));
    expect(sent).toEqual(['SELECT', ...STATEMENTS_OF_FAMILY]);
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
    ['ends the refresh family if it is sent again after 3 s', 3, '203.0.113.7', 400],
    ['ends the refresh family if it is sent again from another network', 0, '203.0.113.8', 400],
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

  it('gives one family when 20 exchanges race', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const winner = winnerOf(await times(20, () => stay(service, moved, {}, NETWORK)));
    expect(await familiesOf(service, entity_id)).toHaveLength(1);
    expect((await refreshCustomer(service, winner.body.refresh_token, {}, NETWORK)).status).toBe(200);
  });
});
