import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { OneTimeCode } from '../../../src/one-time-code/one-time-code.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { sha256 } from '../../../src/platform/secret.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { failAtEachStatement, OUTAGE } from '../../support/dying-transactions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { beginWindow } from '../../support/limit-windows.js';
import { manage } from '../../support/management-api.js';
import { moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { ACME, ACME_ORIGIN, ACME_SITE, PUBLIC_ORIGIN, PUBLIC_SITE } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { ageRedemption, newCustomer } from '../../support/transfers.js';
import { serviceOfTest } from '../../support/use-service.js';

const ADMIN_TOKEN = 'operator-of-remember-errors-0123456789';
const FORGET = '/v2/customer/forget';
const SALES = `/v2/customer/${ACME}/sales/token`;
const TABLES = ['customer', 'browser', 'browser_customer', 'link_ancestor'];
/** A browser with the transferred customer and the one of the earlier browser; the bearer and the redemption. */
const ADDED_ROWS = [0, 1, 2, 2];

let service: TestService;
let database: Database;
let dataSource: DataSource;
beforeAll(async () => {
  const registry = rememberingRegistry([ACME_SITE, PUBLIC_SITE]);
  service = await startTestService({ registry, environment: { ADMIN_TOKEN } });
  database = service.application.get(Database);
  dataSource = service.application.get(DataSource);
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => service?.stop());

const rows = () =>
  Promise.all(TABLES.map(async (table) => Number((await dataSource.query(`SELECT COUNT(*) AS n FROM ${table}`))[0].n)));

const idOf = async (cookie: string, path = TOKEN): Promise<string> =>
  (await service.post(path, cookieBody(), { cookie })).body.entity_id;
const forget = (cookie: string, more: object = {}) =>
  service.post(FORGET, { client_id: ACME_SITE, organization_id: ACME, ...more }, { origin: ACME_ORIGIN, cookie });

describe('protocol §5.6: a transaction that fails while a browser remembers a customer', () => {
  it('leaves no row and a usable code, at whichever statement, and responds with 503', async () => {
    const browser = new TestBrowser(service);
    await browser.visit({}, SALES);
    const move = await moveOf(service, (await newCustomer(service)).access_token);
    const before = await rows();
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      const { status } = await remember(service, move, { cookie: browser.cookie });
      expect(status).toBe(hasFailed() ? 503 : 200);
      if (hasFailed()) expect(await rows()).toEqual(before);
    });
    expect(errors).toBeGreaterThan(2 * TABLES.length);
    expect(await rows()).toEqual(before.map((count, table) => count + (ADDED_ROWS[table] as number)));
  });

  it('leaves no row if another attempt has redeemed the code, whose gift a replay ends', async () => {
    const move = await moveOf(service, (await newCustomer(service)).access_token);
    const before = await rows();
    const transaction = database.transaction.bind(database);
    vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
      const consumed = { consumedBy: 'the first use', consumedAt: new Date(Date.now() - 60_000) };
      await dataSource.getRepository(OneTimeCode).update({ hash: sha256(move.code) }, consumed);
      return transaction(work) as never;
    });
    expectInvalidGrant(await remember(service, move));
    expect(await rows()).toEqual(before);
    expect(await dataSource.getRepository(Revocation).countBy({ value: 'the first use' })).toBe(1);
  });
});

describe('protocol §5.6: a browser that remembers a customer', () => {
  it('still leads to its own customer after the token that created the transfer has ended', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const move = await moveOf(service, known.body.access_token);
    const pair = cookieHeader(await remember(service, move, { cookie: cookieHeader(known) }));
    await ageRedemption(service, move.code, 10);
    expectInvalidGrant(await remember(service, move));
    expect((await service.send('DELETE', TOKEN, bearer(known.body.access_token))).status).toBe(200);
    expect(await idOf(pair)).toBe(known.body.entity_id);
  });

  it('still leads to a customer that it got after its own one was forgotten', async () => {
    const browser = new TestBrowser(service);
    await browser.visit({}, SALES);
    await browser.visit();
    await forget(browser.cookie as string, { group_id: 'sales' });
    const next = (await browser.visit({}, SALES)).body;
    const pair = await rememberedPair(service, next.access_token, browser.cookie);
    await service.send('DELETE', TOKEN, bearer(next.access_token));
    expect(await idOf(pair, SALES)).toBe(next.entity_id);
  });

  it('loses a transferred customer with the transfer, although the browser led to it by an earlier transfer', async () => {
    const phone = await newCustomer(service);
    const first = await rememberedPair(service, phone.access_token);
    const second = await rememberedPair(service, phone.access_token, first);
    await service.send('DELETE', TOKEN, bearer(phone.access_token));
    expect(await idOf(second)).not.toBe(phone.entity_id);
  });

  it('needs replace=true for a customer that a parallel request creates, and the conflict leaves the code usable', async () => {
    const browser = new TestBrowser(service);
    await browser.visit({}, SALES);
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    const transaction = database.transaction.bind(database);
    let created = '';
    vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
      created = await idOf(browser.cookie as string);
      return transaction(work) as never;
    });
    const before = await rows();
    const conflict = await remember(service, move, { cookie: browser.cookie });
    expectError(conflict, { status: 409, error: 'identity_conflict', hint: /^replace: / });
    const [customers, browsers, links, ancestors] = before as [number, number, number, number];
    expect(await rows(), 'only the customer of the parallel request').toEqual([
      customers + 1,
      browsers,
      links + 1,
      ancestors,
    ]);
    const response = await remember(service, move, { cookie: browser.cookie, body: { replace: true } });
    expect(await idOf(cookieHeader(response))).toBe(moved.entity_id);
    expect(await idOf(browser.cookie as string)).toBe(created);
  });

  it('gets no customer that the earlier browser is made to forget during the request', async () => {
    const browser = new TestBrowser(service);
    const sales = (await browser.visit({}, SALES)).body.entity_id;
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    const transaction = database.transaction.bind(database);
    let isForgotten = false;
    vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
      expect((await forget(browser.cookie as string)).status).toBe(200);
      isForgotten = true;
      return transaction(work) as never;
    });
    const pair = cookieHeader(await remember(service, move, { cookie: browser.cookie }));
    expect(isForgotten).toBe(true);
    expect(await idOf(pair)).toBe(moved.entity_id);
    expect(await idOf(pair, SALES)).not.toBe(sales);
  });
});

describe('protocol §2.14: the limit of new identities', () => {
  it('counts each browser that remembers a customer, and a request beyond the limit does not redeem the code', async () => {
    const environment = { RATE_LIMIT: 'identities=2/60' };
    const limited = await serviceOfTest({ registry: rememberingRegistry(), environment });
    beginWindow(limited);
    const { access_token } = await newCustomer(limited);
    const moves = [await moveOf(limited, access_token), await moveOf(limited, access_token)] as const;
    expect((await remember(limited, moves[0])).status).toBe(200);
    expectError(await remember(limited, moves[1]), { status: 429, error: 'temporarily_unavailable', hint: undefined });
    limited.clock.advance({ seconds: 61 });
    expect((await remember(limited, moves[1])).status).toBe(200);
  });
});

describe('protocol §4.5: a client that the organization of the customer does not admit', () => {
  it.each([undefined, 'browser'])('does not redeem the code, with remember=%s', async (kind) => {
    const organization_id = randomUUID();
    const path = `/admin/organizations/${organization_id}`;
    const admit = (public_clients: string[]) => manage(service, 'PATCH', path, bearer(ADMIN_TOKEN), { public_clients });
    await manage(service, 'POST', '/admin/organizations', bearer(ADMIN_TOKEN), { id: organization_id, name: 'New' });
    await admit([PUBLIC_SITE]);
    const customer = await service.post(TOKEN, cookieBody({ client_id: PUBLIC_SITE, organization_id }));
    const move = await moveOf(service, customer.body.access_token, { client_id: PUBLIC_SITE });
    const headers = { origin: PUBLIC_ORIGIN };
    const send = () => remember(service, move, { body: { client_id: PUBLIC_SITE, remember: kind }, headers });
    await admit([]);
    const before = await rows();
    expectInvalidRequest(await send(), 'client_id: not usable in this organization');
    expect(await rows()).toEqual(before);
    await admit([PUBLIC_SITE]);
    expect((await send()).status).toBe(200);
  });
});
