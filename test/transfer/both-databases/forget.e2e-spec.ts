import { describe, expect, it } from 'vitest';
import { newAgent } from '../../support/agent-tokens.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction, failAtEachStatement, LOST_RESPONSE, OUTAGE } from '../../support/dying-transactions.js';
import { expectInvalidRequest, expectLimited } from '../../support/expect-error.js';
import { browserIdOf, secretOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { statementsOf, statementTextsOf } from '../../support/statements.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_SITE,
  AT_RIVAL,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
} from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const FORGET = '/v2/customer/forget';
const group = (name: string) => `/v2/customer/${ACME}/${name}/token`;
const FROM_RIVAL = { origin: RIVAL_ORIGIN };

const service = useService({ registry: rememberingRegistry([ACME_SITE, PUBLIC_SITE]) });

const browserIdIn = (cookie: string) => browserIdOf(cookie.split('__svc_cst=')[1] as string);

function forget(cookie: string | undefined, more: object = {}, headers: Record<string, string> = {}) {
  const body = { client_id: ACME_SITE, organization_id: ACME, ...more };
  return service.post(FORGET, body, { origin: ACME_ORIGIN, ...(cookie && { cookie }), ...headers });
}

/** The cookies of a browser after a customer of the other organization was transferred to it. */
async function pairOfRival(cookie: string): Promise<string> {
  const { access_token } = (await service.visit(undefined, AT_RIVAL)).body;
  const move = await moveOf(service, access_token, { client_id: PUBLIC_SITE });
  const body = { client_id: PUBLIC_SITE, replace: true };
  return cookieHeader(await remember(service, move, { cookie, body, headers: { origin: PUBLIC_ORIGIN } }));
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

/** The tables whose rows a request changes by UPDATE: 0 for customers, 1 for browsers, 2 for sessions. */
async function updatedTables(send: () => Promise<unknown>): Promise<number[]> {
  const tables = ['customer', 'browser', 'session'];
  const texts = await statementTextsOf(service, send);
  const updated = texts.flatMap((sql) => /^UPDATE\W+(\w+)/.exec(sql)?.[1] ?? []);
  return updated.map((table) => tables.indexOf(table)).filter((index) => index >= 0);
}

describe('protocol §4.13: forgetting a browser', () => {
  it('changes customers, then browsers, then sessions, as `remember` does, so that neither waits for the other', async () => {
    const { access_token } = await newCustomer(service);
    const earlier = cookieHeader(await service.visit(undefined, AT_RIVAL));
    const remembered = await updatedTables(() => rememberedPair(service, access_token, earlier));
    const pair = await rememberedPair(service, access_token, earlier);
    const forgotten = await updatedTables(() => forget(pair));
    expect([...new Set(forgotten)]).toEqual([0, 1, 2]);
    // the transfers, the customers of the transaction, the earlier browser, and the redeemed code
    expect([...new Set(remembered)]).toEqual([0, 1, 2]);
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

  it('acts on this browser only: an earlier pair, and a pair that was made from it, lead where they led', async () => {
    const browser = new TestBrowser(service);
    const known = (await browser.visit()).body.entity_id;
    const earlier = browser.cookie as string;
    const later = await pairOfRival(earlier);
    expectCleared(await forget(earlier), await service.visit());
    expect(await service.idOf(later)).toBe(known);
    expect(await service.idOf(earlier)).not.toBe(known);
    const last = await pairOfRival(later);
    expectNotCleared(await forget(last));
    expect(await service.idOf(last)).not.toBe(known);
    expect(await service.idOf(later)).toBe(known);
  });

  it('leaves the devices of the customer and what its tokens made', async () => {
    const browser = new TestBrowser(service);
    const { entity_id, access_token } = (await browser.visit()).body;
    const phone = await rememberedPair(service, access_token);
    const code = await transferToken(service, access_token);
    expect((await forget(browser.cookie)).status).toBe(200);
    expect(await service.idOf(phone)).toBe(entity_id);
    expect((await redeem(service, code)).body.entity_id).toBe(entity_id);
    const later = await transferToken(service, access_token);
    expect((await redeem(service, later)).body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('costs one SELECT if nothing is left to end', async () => {
    const known = await service.visit();
    const cookie = cookieHeader(known);
    await service.idOf(cookie, AT_RIVAL);
    expect((await statementsOf(service, () => forget(cookie))).length).toBeGreaterThan(1);
    expect(await statementsOf(service, () => forget(cookie))).toEqual(['SELECT']);
    expect(await statementsOf(service, () => forget(undefined))).toEqual([]);
  });

  it('forgets all customers of the organization in one transaction, and a repetition goes on after an error', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `many-${at}`);
    const browser = new TestBrowser(service);
    const ids: string[] = [];
    for (const name of names) ids.push((await browser.visit({}, group(name))).body.entity_id);
    const cookie = browser.cookie as string;
    const idsOfBrowser = () => Promise.all(names.map((name) => service.idOf(cookie, {}, group(name))));
    atNextTransaction(service, 'before', () => Promise.reject(LOST_RESPONSE));
    expect((await forget(cookie)).status).toBe(503);
    expect(await idsOfBrowser()).toEqual(ids);
    atNextTransaction(service, 'after', () => Promise.reject(LOST_RESPONSE));
    expect((await forget(cookie)).status, 'the response to the COMMIT is lost').toBe(503);
    expect((await forget(cookie)).cookies).toHaveLength(2);
    for (const id of await idsOfBrowser()) expect(ids).not.toContain(id);
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

  it.each([
    ['no cookies', undefined],
    ['garbage', '__svc_cid=x; __svc_cst=y'],
    ['an unknown pair', `__svc_cid=01890000-0000-7000-8000-000000000000; __svc_cst=${'0'.repeat(112)}`],
  ])('gives a request with %s the same response', async (_, cookie) => {
    const first = await service.visit();
    const [known, unknown] = [await forget(cookieHeader(first)), await forget(cookie)];
    expectCleared(unknown, first);
    expect([unknown.text, unknown.cookies]).toEqual([known.text, known.cookies]);
  });

  it('leaves every customer and responds with 503 after an error at whichever statement', async () => {
    const cookie = cookieHeader(await service.visit(undefined, {}, group('a')));
    await service.idOf(cookie, {}, group('b'));
    const ids = () => Promise.all(['a', 'b'].map((name) => service.idOf(cookie, {}, group(name))));
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

  it('the page of another tenant forgets only the customers of its own organization', async () => {
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
