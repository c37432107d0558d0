import { ServiceUnavailableException } from '@nestjs/common';
import { DataSource, In, IsNull, Not } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { BrowserLink } from '../../../src/identity/browser-link.entity.js';
import { partsOf } from '../../../src/identity/identity-cookies.js';
import { Database } from '../../../src/platform/database/database.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { newAgent } from '../../support/agent-tokens.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction, failAtEachStatement, OUTAGE } from '../../support/dying-transactions.js';
import { expectInvalidRequest, expectLimited } from '../../support/expect-error.js';
import { secretOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { statementsOf, statementTextsOf } from '../../support/statements.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_SITE,
  AT_RIVAL,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
} from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const FORGET = '/v2/customer/forget';
const group = (name: string) => `/v2/customer/${ACME}/${name}/token`;
const FROM_RIVAL = { origin: RIVAL_ORIGIN };

const service = useService({ registry: rememberingRegistry() });

const browserIdIn = (cookie: string) => partsOf(cookie.split('__svc_cst=')[1] as string).browserId;

function forget(cookie: string | undefined, more: object = {}, headers: Record<string, string> = {}) {
  const body = { client_id: ACME_SITE, organization_id: ACME, ...more };
  return service.post(FORGET, body, { origin: ACME_ORIGIN, ...(cookie && { cookie }), ...headers });
}

/** The attributes of a `Set-Cookie` line other than its age. */
const attributesOf = (line = '') =>
  line
    .split('; ')
    .slice(1)
    .filter((attribute) => !/^(Max-Age|Expires)=/.test(attribute))
    .sort();

function expectCleared(response: TestResponse, set: TestResponse): void {
  expect(response).toMatchObject({ status: 200, body: {} });
  expect(response.cookies.map((line) => line.slice(0, 24))).toEqual([
    '__svc_cid=; Max-Age=0; P',
    '__svc_cst=; Max-Age=0; P',
  ]);
  expect(response.cookies.map(attributesOf)).toEqual(set.cookies.map(attributesOf));
}

function expectNotCleared(response: TestResponse): void {
  expect(response).toMatchObject({ status: 200, body: {}, cookies: [] });
}

/** Copies the link of a browser in the group into further browsers, as if each had been made by `remember`. */
async function insertCopies(cookie: string, count: number): Promise<string[]> {
  const links = service.rowsOf(BrowserLink);
  const link = await links.findOneByOrFail({ browserId: browserIdIn(cookie), groupId: 'a' });
  const browserIds = Array.from({ length: count }, () => uuidv7(service.clock.now()));
  await links.insert(browserIds.map((browserId) => ({ ...link, browserId })));
  return browserIds;
}

const liveLinksOf = (browserIds: string[], entityId: string) =>
  service.rowsOf(BrowserLink).countBy({ browserId: In(browserIds), entityId, organizationId: Not(IsNull()) });

/** The tables whose rows a request changes by UPDATE: 0 for customers, 1 for browsers, 2 for links. */
async function updatedTables(send: () => Promise<unknown>): Promise<number[]> {
  const tables = ['customer', 'browser', 'browser_customer'];
  const texts = await statementTextsOf(service, send);
  const updated = texts.flatMap((sql) => /^UPDATE\W+(\w+)/.exec(sql)?.[1] ?? []);
  return updated.map((table) => tables.indexOf(table)).filter((index) => index >= 0);
}

describe('protocol §4.13: forgetting a browser', () => {
  it('changes customers, then browsers, then links, as `remember` does, so that neither waits for the other', async () => {
    const { access_token } = await newCustomer(service);
    const earlier = cookieHeader(await service.visit(undefined, {}, group('sales')));
    const remembered = await updatedTables(() => rememberedPair(service, access_token, earlier));
    const pair = await rememberedPair(service, access_token, earlier);
    const forgotten = await updatedTables(() => forget(pair));
    expect([...new Set(forgotten)]).toEqual([0, 1, 2]);
    expect([...new Set(remembered)]).toEqual([0, 1]);
  });

  it('clears the cookies of a browser without other customers, and a copy of its cookies leads to no customer', async () => {
    const first = await service.visit();
    const cookie = cookieHeader(first);
    expectCleared(await forget(cookie), first);
    const subject = { kind: 'browser', id: browserIdIn(cookie) };
    expect(service.audit.at(-1)).toMatchObject({ event: 'browser.forgotten', subject, organizationId: ACME });
    const copy = await service.visit(cookie);
    expect(copy.body.entity_id).not.toBe(first.body.entity_id);
    expect(secretOf(copy)).not.toBe(secretOf(first));
    expect(await infoStatus(service, first.body.access_token), 'tokens are not ended').toBe(200);
  });

  it('forgets all groups of the organization, or only the given one', async () => {
    const browser = new TestBrowser(service);
    const paths = [group('a'), group('b'), TOKEN];
    const visitAll = () => Promise.all(paths.map((path) => service.idOf(browser.cookie as string, {}, path)));
    await browser.visit({}, group('a'));
    const before = await visitAll();
    expectNotCleared(await forget(browser.cookie, { group_id: 'a' }));
    const [newA, ...others] = await visitAll();
    expect([newA === before[0], others]).toEqual([false, before.slice(1)]);
    expect((await forget(browser.cookie)).cookies).toHaveLength(2);
    const after = await visitAll();
    for (const id of after) expect([newA, ...before]).not.toContain(id);
  });

  it('can be repeated, also for the customer that the browser got afterwards', async () => {
    const cookie = cookieHeader(await service.visit());
    await service.idOf(cookie, AT_RIVAL);
    const seen = new Set<string>();
    for (let round = 0; round < 4; round++) {
      seen.add(await service.idOf(cookie));
      expectNotCleared(await forget(cookie));
      expectNotCleared(await forget(cookie));
    }
    expect(seen.size).toBe(4);
    const parallel = await Promise.all(Array.from({ length: 10 }, () => service.idOf(cookie)));
    expect(new Set(parallel).size, 'parallel first calls create one customer').toBe(1);
  });

  it('acts also on the browsers that the browser was made from by remember', async () => {
    const known = await service.visit();
    const pairs = [cookieHeader(known)];
    for (let depth = 0; depth < 3; depth++)
      pairs.push(await rememberedPair(service, known.body.access_token, pairs.at(-1)));
    expectCleared(await forget(pairs.at(-1)), known);
    for (const pair of pairs) expect(await service.idOf(pair)).not.toBe(known.body.entity_id);
  });

  it.each([
    ['the copied pair', false],
    ['a pair that was made from the copied pair', true],
  ])(
    'ends the copies in a browser that a thief made from a copied pair, if the visitor sends %s',
    async (_, isLater) => {
      const browser = new TestBrowser(service);
      const known = (await browser.visit({}, group('a'))).body.entity_id;
      const copied = browser.cookie as string;
      const moved = await newCustomer(service);
      const ofThief = await rememberedPair(service, moved.access_token, copied);
      const again = await rememberedPair(service, moved.access_token, ofThief);
      const later = await rememberedPair(service, (await newCustomer(service)).access_token, copied);
      expect((await forget(isLater ? later : copied, { group_id: 'a' })).status).toBe(200);
      for (const pair of [copied, ofThief, again, later])
        expect(await service.idOf(pair, {}, group('a'))).not.toBe(known);
      expect(await service.idOf(ofThief), 'a customer that the earlier browser did not have').toBe(moved.entity_id);
    },
  );

  it('costs one SELECT if nothing is left to end', async () => {
    const known = await service.visit();
    const cookie = cookieHeader(known);
    await service.idOf(cookie, AT_RIVAL);
    expect((await statementsOf(service, () => forget(cookie))).length).toBeGreaterThan(1);
    expect(await statementsOf(service, () => forget(cookie))).toEqual(['SELECT']);
    expect(await statementsOf(service, () => forget(undefined))).toEqual([]);
  });

  it('ends the copies of a link in the 100 browsers that were made last, and a further copy replaces the oldest', async () => {
    const known = await service.visit(undefined, {}, group('a'));
    const own = cookieHeader(known);
    const copy = async () => rememberedPair(service, (await newCustomer(service)).access_token, own);
    const oldest = await copy();
    const inserted = await insertCopies(oldest, 98);
    const [second, last] = [await copy(), await copy()];
    expect(await service.idOf(oldest, {}, group('a'))).not.toBe(known.body.entity_id);
    for (const pair of [second, last]) expect(await service.idOf(pair, {}, group('a'))).toBe(known.body.entity_id);
    expect((await forget(own, { group_id: 'a' })).status).toBe(200);
    for (const pair of [own, second, last])
      expect(await service.idOf(pair, {}, group('a'))).not.toBe(known.body.entity_id);
    expect(await liveLinksOf(inserted, known.body.entity_id)).toBe(0);
  });

  it('ends the copies that have replaced the link of the browser', async () => {
    const known = await service.visit(undefined, {}, group('a'));
    const pairs = [cookieHeader(known)];
    for (let at = 0; at < 5; at++) {
      const move = await moveOf(service, (await newCustomer(service)).access_token);
      pairs.push(cookieHeader(await remember(service, move, { cookie: pairs.at(-1), body: { replace: true } })));
      if (at === 2) await insertCopies(pairs.at(-1) as string, 97);
    }
    const [, replaced, , kept] = pairs as [string, string, string, string];
    expect(await service.idOf(kept, {}, group('a'))).toBe(known.body.entity_id);
    expect((await forget(replaced, { group_id: 'a' })).status).toBe(200);
    const subject = { kind: 'browser', id: browserIdIn(replaced) };
    expect(service.audit.at(-1)).toMatchObject({ event: 'browser.forgotten', subject, details: { links: 1 } });
    for (const pair of [kept, pairs.at(-1) as string])
      expect(await service.idOf(pair, {}, group('a'))).not.toBe(known.body.entity_id);
    expect(await statementsOf(service, () => forget(replaced, { group_id: 'a' }))).toEqual(['SELECT']);
  });

  it('ends the links of more customers than one transaction, and a repetition goes on after an error', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `many-${at}`);
    const cookie = cookieHeader(await service.visit(undefined, {}, group('many-0')));
    for (const name of names) await service.idOf(cookie, {}, group(name));
    const sqlDatabase = service.application.get(Database);
    const transaction = sqlDatabase.transaction.bind(sqlDatabase);
    let sent = 0;
    vi.spyOn(sqlDatabase, 'transaction').mockImplementation((work) => {
      if (++sent === 2) throw new ServiceUnavailableException();
      return transaction(work) as never;
    });
    expect((await forget(cookie)).status).toBe(503);
    vi.restoreAllMocks();
    const links = service.rowsOf(BrowserLink);
    const browserId = browserIdIn(cookie);
    const left = () => links.countBy({ browserId, organizationId: Not(IsNull()) });
    expect(await left()).toBe(12);
    expect((await forget(cookie)).cookies).toHaveLength(2);
    expect(await left()).toBe(0);
  });

  it('clears the cookies of a browser that leads only to the customer of a deleted agent', async () => {
    const { email, path } = await newAgent(service);
    const agent = await issueAgentToken(service, { email });
    const { entity_id: customer_id } = await newCustomer(service);
    const move = await moveOf(service, agent, { bearer_type: 'agent', customer_id, client_id: ACME_SITE });
    const response = await remember(service, move);
    const forgetAtRival = () =>
      forget(cookieHeader(response), { client_id: RIVAL_SITE, organization_id: RIVAL }, FROM_RIVAL);
    expect(await forgetAtRival()).toMatchObject({ status: 200, cookies: [] });
    await service.admin('DELETE', path);
    expectCleared(await forgetAtRival(), response);
    expect(await statementsOf(service, forgetAtRival)).toEqual(['SELECT']);
  });

  it('acts on all valid pairs of a request', async () => {
    const both = [await service.visit(), await service.visit()] as const;
    expectCleared(await forget(both.map(cookieHeader).join('; ')), both[0]);
    for (const each of both) expect(await service.idOf(cookieHeader(each))).not.toBe(each.body.entity_id);
  });

  it.runIf(onMariadb)('reads no other links of the customers, also for several pairs of a request', async () => {
    const known = [await service.visit(undefined, {}, group('a')), await service.visit(undefined, {}, group('a'))];
    const pairs = known.map(cookieHeader);
    for (const pair of pairs) for (const name of ['b', 'c', 'd']) await service.idOf(pair, {}, group(name));
    const links = service.rowsOf(BrowserLink);
    const link = await links.findOneByOrFail({ entityId: known[0]?.body.entity_id });
    const newIds = (count: number) => Array.from({ length: count }, () => uuidv7(service.clock.now()));
    const ofSignIn = { ...link, origin: 'sign-in' } as const;
    await links.insert(newIds(1_000).map((id) => ({ ...ofSignIn, browserId: id, beganIn: id })));
    await links.insert(newIds(2_000).map((id) => ({ ...link, browserId: id, entityId: id })));
    const dataSource = service.application.get(DataSource);
    await dataSource.query('ANALYZE TABLE browser_customer, customer');
    const sent = vi.spyOn(dataSource.logger, 'logQuery');
    expect((await forget(pairs.join('; '))).status).toBe(200);
    const reads = sent.mock.calls.filter(([sql]) => sql.includes('JOIN browser_customer copy'));
    sent.mockRestore();
    expect(reads.length).toBeGreaterThan(0);
    for (const [sql, parameters] of reads) {
      const plan: { table: string; key: string }[] = await dataSource.query(`EXPLAIN ${sql}`, parameters);
      const [ofLink] = plan.filter(({ table }) => table === 'link');
      expect(ofLink?.key, 'an index that begins with the browser').toMatch(/^(PRIMARY|browser_customer_of_scope)$/);
    }
  });

  it.each([
    ['no cookies', undefined],
    ['garbage', '__svc_cid=x; __svc_cst=y'],
    ['an unknown pair', `__svc_cid=01890000-0000-7000-8000-000000000000; __svc_cst=${'0'.repeat(96)}`],
  ])('gives a request with %s the same response', async (_, cookie) => {
    const first = await service.visit();
    const [known, unknown] = [await forget(cookieHeader(first)), await forget(cookie)];
    expectCleared(unknown, first);
    expect([unknown.text, unknown.cookies]).toEqual([known.text, known.cookies]);
  });

  it('leaves every link and responds with 503 after an error at whichever statement', async () => {
    const cookie = cookieHeader(await service.visit(undefined, {}, group('a')));
    await service.idOf(cookie, {}, group('b'));
    const copy = await rememberedPair(service, (await newCustomer(service)).access_token, cookie);
    const ids = () =>
      Promise.all(['a', 'b'].flatMap((name) => [cookie, copy].map((pair) => service.idOf(pair, {}, group(name)))));
    const before = await ids();
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      expect((await forget(cookie)).status).toBe(hasFailed() ? 503 : 200);
      if (hasFailed()) expect(await ids()).toEqual(before);
    });
    expect(errors).toBeGreaterThan(10);
    for (const id of await ids()) expect(before).not.toContain(id);
  });

  it('keeps the secret and the customer of another organization that a request creates meanwhile', async () => {
    const cookie = cookieHeader(await service.visit());
    let created = '';
    atNextTransaction(service, 'before', async () => {
      created = await service.idOf(cookie, AT_RIVAL);
    });
    expectNotCleared(await forget(cookie));
    expect(created).not.toBe('');
    expect(await service.idOf(cookie, AT_RIVAL)).toBe(created);
  });
});

describe('protocol §4.13: who may let a browser be forgotten', () => {
  it.each([
    ['it names the client of another organization', { client_id: RIVAL_SITE }, FROM_RIVAL, /^client_id: /],
    ['its Origin is another client’s', {}, FROM_RIVAL, /^Origin: /],
    ['it has no organization', { organization_id: undefined }, {}, /^organization_id: required/],
    ['it has an invalid group', { group_id: 'a.b' }, {}, /^group_id: /],
  ])('a request is rejected and changes nothing if %s', async (_, more, headers, hint) => {
    const first = await service.visit();
    expectInvalidRequest(await forget(cookieHeader(first), more, headers), hint);
    expect(await service.idOf(cookieHeader(first))).toBe(first.body.entity_id);
  });

  it('the page of another tenant ends only the links of its own organization', async () => {
    const first = await service.visit();
    const cookie = cookieHeader(first);
    const ofRival = await service.idOf(cookie, AT_RIVAL);
    const body = { client_id: RIVAL_SITE, organization_id: RIVAL };
    expectNotCleared(await forget(cookie, body, FROM_RIVAL));
    expect(await service.idOf(cookie)).toBe(first.body.entity_id);
    expect(await service.idOf(cookie, AT_RIVAL)).not.toBe(ofRival);
  });

  it('a request beyond the limit forgets of its network gets 429 and ends nothing', async () => {
    const limited = await serviceOfTest({ environment: { RATE_LIMIT: 'forgets=1/60' } });
    beginWindow(limited);
    const known = await limited.visit();
    const cookie = cookieHeader(known);
    const send = (headers: Record<string, string>) =>
      limited.post(FORGET, { client_id: ACME_SITE, organization_id: ACME }, headers);
    expect((await send({})).status).toBe(200);
    expectLimited(await send({ cookie }));
    expect(await limited.idOf(cookie)).toBe(known.body.entity_id);
    limited.clock.advance({ seconds: 61 });
    expect((await send({ cookie })).status).toBe(200);
  });
});
