import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { BrowserLink } from '../../../src/identity/browser-link.entity.js';
import { partsOf } from '../../../src/identity/identity-cookies.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { cookieValue, identitiesOf, secretOf } from '../../support/identities.js';
import { linksOf, moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { statementsOf, statementTextsOf } from '../../support/statements.js';
import { ACME, ACME_ORIGIN, RIVAL_ORIGIN } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const SALES = `/v2/customer/${ACME}/sales/token`;

interface Claims {
  jti: string;
  ancestors: string[];
}

const service = useService({ registry: rememberingRegistry() });

const pairOf = (cookie: string) => partsOf(cookie.split('__svc_cst=')[1] as string);
const move = async (token?: string) => moveOf(service, token ?? (await newCustomer(service)).access_token);

describe('protocol §4.5: remember=browser', () => {
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

  it('leaves the customer to the first device too, and to any number of devices', async () => {
    const phone = new TestBrowser(service);
    const { entity_id, access_token } = (await phone.visit()).body;
    const pairs = [await rememberedPair(service, access_token), await rememberedPair(service, access_token)];
    expect((await phone.visit()).body.entity_id).toBe(entity_id);
    for (const pair of pairs) expect(await service.idOf(pair)).toBe(entity_id);
    expect(await linksOf(service, entity_id)).toHaveLength(2);
  });

  it('keeps the group of the customer', async () => {
    const { entity_id, access_token } = (await service.post(SALES, cookieBody())).body;
    const pair = await rememberedPair(service, access_token);
    expect(await service.idOf(pair, {}, SALES)).toBe(entity_id);
    expect(await service.idOf(pair)).not.toBe(entity_id);
    expect(await service.idOf(pair, {}, SALES)).toBe(entity_id);
  });

  it('costs a returning customer two SELECTs and no write, except for the first call of a day', async () => {
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'SELECT']);
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now() + 86_400_000);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'SELECT', 'UPDATE']);
    expect(await statementsOf(service, () => service.visit(pair))).toEqual(['SELECT', 'SELECT']);
  });

  it('keeps the depth of the token in the chain of transfers', async () => {
    const { access_token } = await newCustomer(service);
    const response = await remember(service, await move(access_token));
    const later = (await service.visit(cookieHeader(response))).body;
    const [first, second] = [claimsOf(response.body.access_token), claimsOf(later.access_token)] as unknown as Claims[];
    expect(second).toMatchObject({ transfers: 1, gen: 0, ancestors: [claimsOf(access_token).jti, expect.any(String)] });
    expect(first?.jti.startsWith(`${second?.ancestors[1]}.`)).toBe(true);
    let token: string = later.access_token;
    for (let depth = 2; depth <= 8; depth++)
      token = (await service.visit(await rememberedPair(service, token))).body.access_token;
    expect(claimsOf(token).transfers).toBe(8);
    const { status } = await service.post(
      '/v2/customer/identity_transfer',
      { bearer_type: 'customer', client_id: 'acme-site' },
      { authorization: `Bearer ${token}` },
    );
    expect(status).toBe(400);
  });
});

describe('protocol §3.10: the number of live links of one root', () => {
  it('does not count an idle link', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const pairs: string[] = [];
    for (let at = 0; at < 10; at++) pairs.push(await rememberedPair(service, access_token));
    const sibling = (await service.visit(pairs[0] as string)).body.access_token;
    const later = await moveOf(service, sibling);
    expect((await remember(service, later)).status).toBe(429);
    const links = service.rowsOf(BrowserLink);
    const { browserId } = pairOf(pairs[5] as string);
    await links.update({ entityId: entity_id, browserId }, { seenDay: 0 });
    expect((await remember(service, later)).status).toBe(200);
  });
});

describe('protocol §3.10: the links of a customer that a further device reads', () => {
  it.each<[string, (token: string) => Promise<unknown>]>([
    ['the token that created the transfers', (token) => service.send('DELETE', TOKEN, bearer(token))],
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
    const explained = await serviceOfTest({ registry: rememberingRegistry() });
    const moved = await moveOf(explained, (await newCustomer(explained)).access_token);
    const cookie = cookieHeader(await explained.post(SALES, cookieBody()));
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

describe('protocol §4.5: a request with remember=browser that is rejected', () => {
  const reject = async (send: (code: Awaited<ReturnType<typeof move>>) => Promise<TestResponse>) => {
    const { entity_id, access_token } = await newCustomer(service);
    const moved = await move(access_token);
    const before = await identitiesOf(service).count();
    const response = await send(moved);
    expect(await identitiesOf(service).count()).toBe(before);
    expect(await linksOf(service, entity_id)).toEqual([]);
    expect((await remember(service, moved)).status, 'the code is not redeemed').toBe(200);
    return response;
  };

  it('comes from a client whose entry does not list it', async () => {
    const other = await serviceOfTest();
    const { access_token } = await newCustomer(other);
    const moved = await moveOf(other, access_token);
    const response = await remember(other, moved);
    expectError(response, { status: 400, error: 'unauthorized_client', hint: /^remember: / });
    expect((await redeem(other, moved.code, { code_verifier: moved.verifier })).status).toBe(200);
  });

  it('has a code that was created without a code_challenge', async () => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const parameters = { remember: 'browser' };
    expectInvalidRequest(await redeem(service, code, parameters, { origin: ACME_ORIGIN }), /^remember: /);
    expect((await redeem(service, code)).status).toBe(200);
  });

  it.each([
    ['has no Origin', {}, { origin: '' }, /^remember: /],
    ['has the Origin of another client', {}, { origin: RIVAL_ORIGIN }, /^Origin: /],
    ['has another value of remember', { remember: 'cookie' }, {}, /^remember: /],
    ['has a list of values', { remember: ['browser'] }, {}, /^remember: /],
    ['has replace without remember', { remember: undefined, replace: true }, {}, /^replace: /],
    ['has replace=false without remember', { remember: undefined, replace: false }, {}, /^replace: /],
    ['has a replace that is no boolean', { replace: 'true' }, {}, /^replace: must be a boolean/],
  ])('%s', async (_, body, headers, hint) => {
    const without = 'origin' in headers && headers.origin === '';
    const response = await reject(({ code, verifier }) =>
      without
        ? redeem(service, code, { code_verifier: verifier, remember: 'browser' })
        : remember(service, { code, verifier }, { body, headers }),
    );
    expectInvalidRequest(response, hint);
  });

  it('has a wrong verifier', async () => {
    expectInvalidGrant(await reject(({ code }) => remember(service, { code, verifier: 'v'.repeat(43) })));
  });
});
