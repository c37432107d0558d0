import { describe, expect, it } from 'vitest';
import { AS_BACKEND, askToken } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { implicitToken } from '../support/authorization-page.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { expectLimited } from '../support/expect-error.js';
import { identitiesOf, sessionsOfBrowser } from '../support/identities.js';
import { beginWindow } from '../support/limit-windows.js';
import { metricOf } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { delaySelects, statementsOf } from '../support/statements.js';
import { ACME, PUBLIC_SITE, UNKNOWN_CUSTOMER } from '../support/test-registry.js';
import type { TestService } from '../support/test-service.js';
import { newCustomer as madeCustomer, redeem, sessionsIn, TRANSFER, transferBody } from '../support/transfers.js';
import { serviceOfTest, type UsedService } from '../support/use-service.js';

async function limited(RATE_LIMIT: string, environment: Record<string, string> = {}): Promise<UsedService> {
  const service = await serviceOfTest({ environment: { RATE_LIMIT, ...environment } });
  beginWindow(service);
  return service;
}

const from = (ip: string) => ({ 'x-forwarded-for': ip });
const newCustomer = (service: TestService, headers: Record<string, string> = {}, path = TOKEN) =>
  service.post(path, cookieBody(), headers);

describe('protocol §2.14: the limit of new identities by network', () => {
  it('responds 429 with Retry-After until the next window, and never limits a returning customer', async () => {
    const service = await limited('identities=3/60');
    const first = await newCustomer(service);
    const cookie = cookieHeader(first);
    await newCustomer(service);
    await newCustomer(service);
    const rejected = await newCustomer(service);
    expectLimited(rejected);
    for (let visit = 0; visit < 5; visit++) expect(await service.idOf(cookie)).toBe(first.body.entity_id);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="identities"}')).toBe(1);
    service.clock.advance({ seconds: Number(rejected.headers.get('retry-after')) });
    for (let n = 0; n < 3; n++) expect((await newCustomer(service)).status).toBe(200);
    expectLimited(await newCustomer(service));
  });

  it('counts identities of groups, and customers that an agent creates', async () => {
    const service = await limited('identities=2/60');
    const agent = bearer(await implicitToken(service));
    const first = await newCustomer(service);
    const cookie = cookieHeader(first);
    const body = cookieBody({ organization_id: undefined });
    expect((await service.post(`/v2/customer/${ACME}/support/token`, body, { cookie })).status).toBe(200);
    expectLimited(await service.post(`/v2/customer/${ACME}/sales/token`, body, { cookie }));
    expectLimited(await service.post(TOKEN, cookieBody({ grant_type: 'agent_token' }), agent));
    expectLimited(await service.post('/customer', cookieBody({ grant_type: undefined }), agent));
  });

  it('counts one customer for parallel first calls of a browser in a group, which all get it', async () => {
    const service = await limited('identities=3/60');
    const first = await newCustomer(service);
    delaySelects(service);
    const sales = () => newCustomer(service, { cookie: cookieHeader(first) }, `/v2/customer/${ACME}/sales/token`);
    const responses = await Promise.all(Array.from({ length: 10 }, sales));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
    expect((await newCustomer(service)).status).toBe(200);
    expectLimited(await newCustomer(service));
    const before = await Promise.all([identitiesOf(service).count(), sessionsOfBrowser(service, first)]);
    const support = `/v2/customer/${ACME}/support/token`;
    expectLimited(await newCustomer(service, { cookie: cookieHeader(first) }, support));
    expect(await Promise.all([identitiesOf(service).count(), sessionsOfBrowser(service, first)])).toEqual(before);
  });

  it('makes a request of a known browser beyond it cost one SELECT and no transaction', async () => {
    const service = await limited('identities=1/60');
    const cookie = cookieHeader(await newCustomer(service));
    const sent = await statementsOf(service, async () =>
      expectLimited(await newCustomer(service, { cookie }, `/v2/customer/${ACME}/support/token`)),
    );
    expect(sent).toEqual(['SELECT']);
  });

  it.each([
    ['an IPv4 address', '203.0.113.7', '203.0.113.8'],
    ['an IPv4 address, also when it is written as IPv6', '::ffff:203.0.113.7', '203.0.113.8'],
    ['an IPv6 /64', '2001:db8:1:2::1', '2001:db8:1:3::1'],
  ])('counts the requests of a network, which is %s', async (_rule, ip, other) => {
    const service = await limited('identities=2/60', { TRUST_PROXY: '1' });
    const within = ip.includes('db8') ? '2001:0db8:1:2:ffff:ffff::9' : '203.0.113.7';
    await newCustomer(service, from(ip));
    await newCustomer(service, from(within));
    expectLimited(await newCustomer(service, from(ip)));
    expectLimited(await newCustomer(service, from(within)));
    expect((await newCustomer(service, from(other))).status).toBe(200);
  });

  it.each([
    ['when no proxy is trusted', {}, (n: number) => `198.51.100.${n}`],
    ['before the value that the proxy adds', { TRUST_PROXY: '1' }, (n: number) => `198.51.100.${n}, 192.0.2.1`],
    ['when another proxy is trusted', { TRUST_PROXY: '10.0.0.0/8' }, (n: number) => `198.51.100.${n}`],
  ])('cannot be evaded with a forged X-Forwarded-For %s', async (_rule, environment, header) => {
    const service = await limited('identities=2/60', environment);
    const statuses = [];
    for (let n = 1; n <= 5; n++) statuses.push((await newCustomer(service, from(header(n)))).status);
    expect(statuses).toEqual([200, 200, 429, 429, 429]);
  });

  it('allows an IPv6 /56 8 times and a /48 32 times the limit', async () => {
    const service = await limited('identities=1/3600', { TRUST_PROXY: '1' });
    const create = (fourth: number) => newCustomer(service, from(`2001:db8:1:${fourth.toString(16)}::1`));
    const statuses = async (of56: number) => {
      const found = [];
      for (let of64 = 0; of64 < 9; of64++) found.push((await create(256 * of56 + of64)).status);
      return found;
    };
    const eightOfNine = [...Array(8).fill(200), 429];
    for (let of56 = 0; of56 < 4; of56++) expect(await statuses(of56)).toEqual(eightOfNine);
    expectLimited(await create(256 * 4), 3_600); // the first of its /56, and the 33rd of the /48
    expect((await newCustomer(service, from('2001:db8:2::1'))).status).toBe(200);
    expect((await newCustomer(service, from('203.0.113.7'))).status).toBe(200);
  });

  it('counts a rejected request of one IPv6 /64 neither for its /56 nor for its /48', async () => {
    const service = await limited('identities=1/3600', { TRUST_PROXY: '1' });
    const create = (network: string) => newCustomer(service, from(`2001:db8:1:${network}::1`));
    expect((await create('0')).status).toBe(200);
    for (let n = 0; n < 20; n++) expectLimited(await create('0'), 3_600);
    for (let n = 1; n < 8; n++) expect((await create(`${n}`)).status).toBe(200);
    for (let n = 0; n < 20; n++) expectLimited(await create(`f${n % 10}`), 3_600); // the /56 has used its 8
    for (let n = 1; n < 4; n++) expect((await create(`${n}00`)).status).toBe(200);
  });

  it('admits no more than the limit from a parallel flood', async () => {
    const service = await limited('identities=10/60');
    const responses = await Promise.all(Array.from({ length: 100 }, () => newCustomer(service)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(10);
  });
});

it('the limit of token requests by client counts only requests with the right secret at /v2/token', async () => {
  const service = await limited('tokens=2/60');
  const ask = (more: object = {}) =>
    askToken(service, { ...AS_BACKEND, grant_type: 'refresh_token', refresh_token: 'x', ...more });
  for (let guess = 0; guess < 5; guess++) expect((await ask({ client_secret: 'wrong' })).status).toBe(401);
  expect([(await ask()).status, (await ask()).status]).toEqual([400, 400]);
  expectLimited(await ask());
});

describe('identity_transfer', () => {
  const transfer = (service: TestService, token: string, more: object = {}) =>
    service.post(TRANSFER, transferBody(more), bearer(token));

  it('counts against the token requests of the client, before a row is written', async () => {
    const service = await limited('tokens=3/3600');
    const { access_token } = await madeCustomer(service);
    const responses = [await transfer(service, access_token), await transfer(service, access_token)];
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expectLimited(await transfer(service, access_token), 3_600);
    expect(await sessionsIn(service).countBy({ kind: 'code' })).toBe(2);
    expect((await transfer(service, access_token, { client_id: PUBLIC_SITE })).status).toBe(200);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="tokens"}')).toBe(1);
  });

  it('is limited for each customer, whether the customer or an agent asks', async () => {
    const service = await limited('transfers=2/3600');
    expect(await metricOf(service, 'cas_rate_limited_total{limit="transfers"}')).toBe(0);
    const { access_token, entity_id: customer_id } = await madeCustomer(service);
    const agent = await issueAgentToken(service);
    const byAgent = { bearer_type: 'agent', customer_id };
    expect((await transfer(service, access_token)).status).toBe(200);
    expect((await transfer(service, agent, byAgent)).status).toBe(200);
    const rejected = await transfer(service, access_token);
    expectLimited(rejected, 3_600);
    expectLimited(await transfer(service, agent, byAgent), 3_600);
    expect(await sessionsIn(service).countBy({ kind: 'code' })).toBe(2);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="transfers"}')).toBe(2);
    const other = await madeCustomer(service);
    expect((await transfer(service, other.access_token)).status).toBe(200);
    expect((await transfer(service, agent, { ...byAgent, customer_id: other.entity_id })).status).toBe(200);
    service.clock.advance({ seconds: Number(rejected.headers.get('retry-after')) });
    expect((await transfer(service, access_token)).status).toBe(200);
  });

  it('does not count an unknown customer_id, or the exchange of a transfer token', async () => {
    const service = await limited('transfers=1/3600');
    const agent = await issueAgentToken(service);
    const unknown = { bearer_type: 'agent', customer_id: UNKNOWN_CUSTOMER };
    for (let n = 0; n < 3; n++) expect((await transfer(service, agent, unknown)).status).toBe(400);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="transfers"}')).toBe(0);
    const { body } = await transfer(service, (await madeCustomer(service)).access_token);
    const moved = await redeem(service, body.identity_transfer_token);
    expect(moved.status).toBe(200);
    expectLimited(await transfer(service, moved.body.access_token), 3_600);
  });

  it('admits 60 transfers of a customer per minute by default', async () => {
    const service = await limited('identities=120/60');
    const { access_token } = await madeCustomer(service);
    beginWindow(service);
    const responses = await Promise.all(Array.from({ length: 70 }, () => transfer(service, access_token)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(60);
  });
});

it('counts in each process alone: two processes admit twice the limit', async () => {
  const [one, other] = [await limited('identities=2/3600'), await limited('identities=2/3600')];
  for (const service of [one, other]) {
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push((await newCustomer(service)).status);
    expect(statuses).toEqual([200, 200, 429]);
  }
});
