import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import { onMariadb, type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { agentTokenBody, claimsOf, refresh } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { FORM } from '../../support/authorization-page.js';
import { cookieBody, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { expectError, expectInvalidRequest, expectInvalidToken } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { type ServiceProcess, startPod } from '../../support/processes.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_NO_COOKIES,
  ACME_ORIGIN,
  ACME_SITE,
  BACKEND_SECRET,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL_ORIGIN,
  testRegistry,
} from '../../support/test-registry.js';
import { request, type TestResponse } from '../../support/test-service.js';
import {
  agentTokenPair,
  authorizationCode,
  everythingIn,
  INFO,
  infoStatus,
  newCustomer,
  redeem,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const INTROSPECT = '/oauth2/introspect';
const REVOKE = '/oauth2/revoke';
const TTL_SECONDS = 28_800;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UNKNOWN_CUSTOMER_ID = '01890000-0000-7000-8000-000000000000';
/** Well-formed, so that the service must ask the database. */
const UNKNOWN_REFRESH_TOKEN = `dev:${'x'.repeat(22)}.${'x'.repeat(43)}`;
const OLD_ADMIN_TOKEN = 'admin-token-before-rotation-0123456789';
const SERVER_SECRET = 'a long secret: with + and % and ä';
const CHAT_API = basic('customer-chat-api', SERVER_SECRET);
const AGENT_API = basic('agent-chat-api', SERVER_SECRET);
const BACKEND = basic(ACME_BACKEND, BACKEND_SECRET);
const OPERATOR = bearer(ADMIN_TOKEN);

const registry = testRegistry();
registry.resource_servers.push(
  { id: 'customer-chat-api', secret: SERVER_SECRET, audiences: ['customer-api'] },
  { id: 'agent-chat-api', secret: SERVER_SECRET, audiences: ['agent-api'] },
  { id: 'gateway', secret: SERVER_SECRET, audiences: ['agent-api', 'customer-api'] },
  { id: 'other-api', secret: SERVER_SECRET, audiences: ['other-api'] },
  { id: 'deaf-api', secret: SERVER_SECRET, audiences: [] },
);

const service = useService({ registry, environment: { ADMIN_TOKEN: `${OLD_ADMIN_TOKEN},${ADMIN_TOKEN}` } });
/** Another process on the same database, without an ADMIN_TOKEN. */
let pod: ServiceProcess;
let customer: { entity_id: string; access_token: string };
let agentToken: string;
beforeAll(async () => {
  pod = await startPod(service);
});
beforeEach(async () => {
  customer = await newCustomer(service);
  agentToken = await issueAgentToken(service);
});
afterAll(async () => {
  await pod?.terminate();
});

const info = (token: string, headers: Record<string, string> = {}) =>
  service.send('GET', INFO, { ...bearer(token), ...headers });
const end = (token: string, headers: Record<string, string> = {}) =>
  service.send('DELETE', TOKEN, { ...bearer(token), ...headers });
const introspect = (token: unknown, as: Record<string, string> = CHAT_API) =>
  manage(service, 'POST', INTROSPECT, as, { token });
const revoke = (token: unknown, as: Record<string, string> = BACKEND) => manage(service, 'POST', REVOKE, as, { token });
const podInfo = (token: string) => request(pod.url + INFO, { headers: bearer(token) });

function expectInactive(response: TestResponse): void {
  expect({ status: response.status, text: response.text }).toEqual({ status: 200, text: '{"active":false}' });
}

function expectInvalidClient(response: TestResponse): void {
  expectError(response, { status: 401, error: 'invalid_client', hint: undefined });
  expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
}

describe('GET /v2/customer/info', () => {
  it('returns exactly the fields of protocol §4.11 for a customer token of any grant', async () => {
    const byAgent = await service.post(TOKEN, agentTokenBody({ client_id: PUBLIC_SITE }), bearer(agentToken));
    const transferred = await redeem(service, await transferToken(service, customer.access_token));
    const { sub, client_id: agentClient } = claimsOf(agentToken);
    const act = { sub, client_id: agentClient, gen: 0 };
    for (const [token, client_id, entity_id, more] of [
      [customer.access_token, ACME_SITE, customer.entity_id, { gty: 'cookie' }],
      [byAgent.body.access_token, PUBLIC_SITE, byAgent.body.entity_id, { gty: 'agent_token', act }],
      [transferred.body.access_token, ACME_SITE, customer.entity_id, { gty: 'identity_token' }],
    ]) {
      const { status, body, cookies } = await info(token);
      expect({ status, cookies }).toEqual({ status: 200, cookies: [] });
      expect(body).toEqual({
        access_token: token,
        client_id,
        entity_id,
        expires_in: expect.any(Number),
        organization_id: ACME,
        token_type: 'Bearer',
        ...more,
      });
    }
  });

  it('returns the whole seconds until the token expires', async () => {
    for (const [move, left] of [
      [0, TTL_SECONDS],
      [1_000, TTL_SECONDS - 1_000],
      [TTL_SECONDS - 1_000 - 10, 10],
    ] as const) {
      service.clock.advance({ seconds: move });
      const { expires_in } = (await info(customer.access_token)).body;
      expect(Number.isInteger(expires_in)).toBe(true);
      expect(expires_in).toBeLessThanOrEqual(left);
      expect(expires_in).toBeGreaterThan(left - 5);
    }
    service.clock.advance({ seconds: 10 });
    expectInvalidToken(await info(customer.access_token));
  });

  it('responds with 401 to an agent token, a transfer token, an invalid token and no token', async () => {
    const code = await transferToken(service, customer.access_token);
    const damaged = [customer.access_token.slice(0, -1), customer.access_token.replace(':', '%3A'), 'dev:x', ''];
    for (const wrong of [agentToken, code, ...damaged]) expectInvalidToken(await info(wrong));
    expectInvalidToken(await service.send('GET', INFO));
  });

  it('accepts an Origin only if it belongs to the client of the token', async () => {
    for (const origin of ['https://evil.example', 'null', PUBLIC_ORIGIN, RIVAL_ORIGIN, '']) {
      expectInvalidRequest(await info(customer.access_token, { origin }), /^Origin: /);
    }
    const { status, headers } = await info(customer.access_token, { origin: ACME_ORIGIN });
    expect({ status, origin: headers.get('access-control-allow-origin') }).toEqual({
      status: 200,
      origin: ACME_ORIGIN,
    });
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  });
});

describe('DELETE /v2/customer/token', () => {
  it('revokes the bearer token at once, for every use, and no other token of the customer', async () => {
    const byAgent = agentTokenBody({ entity_id: customer.entity_id });
    const other = (await service.post(TOKEN, byAgent, bearer(agentToken))).body.access_token;
    const { status, text, cookies } = await end(customer.access_token);
    expect({ status, text, cookies }).toEqual({ status: 200, text: '{}', cookies: [] });
    expectInvalidToken(await info(customer.access_token));
    expect((await end(customer.access_token)).status, 'a token that has ended already').toBe(200);
    expectInvalidToken(await service.post(TRANSFER, transferBody(), bearer(customer.access_token)));
    expectInactive(await introspect(customer.access_token));
    expect((await info(other)).status).toBe(200);
  });

  it('takes effect at once in another process, in both directions', async () => {
    const other = await newCustomer(service);
    for (const token of [customer.access_token, other.access_token]) expect((await podInfo(token)).status).toBe(200);
    await end(customer.access_token);
    expectInvalidToken(await podInfo(customer.access_token));
    const ended = await request(pod.url + TOKEN, { method: 'DELETE', headers: bearer(other.access_token) });
    expect(ended.status).toBe(200);
    expectInvalidToken(await info(other.access_token));
  });

  it('stores no token in the database', async () => {
    await end(customer.access_token);
    const all = await everythingIn(service);
    expect(all).toContain(claimsOf(customer.access_token).jti);
    expect(all).not.toContain(customer.access_token.split('.')[2]);
  });

  it('revokes nothing for an agent token or without a token (401), or from a foreign Origin (400)', async () => {
    expectInvalidToken(await end(agentToken));
    expectInvalidToken(await service.send('DELETE', TOKEN));
    expectInvalidRequest(await end(customer.access_token, { origin: 'https://evil.example' }), /^Origin: /);
    expect((await service.post(TOKEN, agentTokenBody(), bearer(agentToken))).status).toBe(200);
    expect((await info(customer.access_token)).status).toBe(200);
  });
});

describe('POST /oauth2/introspect', () => {
  it('shows a resource server the claims of a token of its audience', async () => {
    const { status, body, headers } = await introspect(customer.access_token);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    const claims = claimsOf(customer.access_token);
    expect(body).toEqual({ active: true, token_type: 'Bearer', ...claims });
    expect(body).toMatchObject({ sub: customer.entity_id, aud: 'customer-api', organization_id: ACME });

    const ofAgent = await introspect(agentToken, AGENT_API);
    expect(ofAgent.body).toEqual({ active: true, token_type: 'Bearer', ...claimsOf(agentToken) });
    expect(ofAgent.body).toMatchObject({ aud: 'agent-api', scope: 'customers:own' });
  });

  it('shows each resource server the tokens of its audiences, and the operator all tokens', async () => {
    const resourceServer = (id: string) => basic(id, SERVER_SECRET);
    for (const [as, sees] of [
      [CHAT_API, ['customer']],
      [AGENT_API, ['agent']],
      [resourceServer('gateway'), ['customer', 'agent']],
      [resourceServer('other-api'), []],
      [resourceServer('deaf-api'), []],
      [OPERATOR, ['customer', 'agent']],
      [bearer(OLD_ADMIN_TOKEN), ['customer', 'agent']],
    ] as const) {
      for (const [kind, token] of [
        ['customer', customer.access_token],
        ['agent', agentToken],
      ] as const) {
        const response = await introspect(token, as);
        if ((sees as readonly string[]).includes(kind)) expect(response.body.active).toBe(true);
        else expectInactive(response);
      }
    }
  });

  it('responds that any other text than a valid access token is inactive, without details', async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    const code = await transferToken(service, customer.access_token);
    const [region, jws = ''] = customer.access_token.split(':');
    const [header = '', claims = '', signature = ''] = jws.split('.');
    const forged = Buffer.from(
      JSON.stringify({ ...claimsOf(customer.access_token), sub: UNKNOWN_CUSTOMER_ID }),
    ).toString('base64url');
    const wrong = [
      ...[access_token, refresh_token, code, await authorizationCode(service)],
      ...['x', 'dev:', '\u0000', customer.entity_id, ''.padEnd(9, '.')],
      `eu:${jws}`,
      ...[`${header}.${forged}.${signature}`, `${header}.${claims}.`, `${header}.${claims}`].map(
        (t) => `${region}:${t}`,
      ),
    ];
    for (const token of wrong) expectInactive(await introspect(token));
  });

  it.each([
    [
      'without its region prefix',
      (token: string) => token.replace(/^dev:/, ''),
      /^token: the region prefix is missing/,
    ],
    ['with %3A', (token: string) => token.replace(':', '%3A'), /^token: replace %3A by a colon$/],
  ])('responds that a token %s is inactive, and hints at the form', async (_case, change, hint) => {
    const body = { active: false, error_hint: expect.stringMatching(hint) };
    expect((await introspect(change(customer.access_token))).body).toEqual(body);
  });

  it.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong secret', basic('customer-chat-api', 'wrong')],
    ['the credentials of a client application', BACKEND],
    ['a wrong operator token', bearer('wrong-admin-token')],
    ['both operator tokens at once', bearer(`${OLD_ADMIN_TOKEN},${ADMIN_TOKEN}`)],
    ['the operator token as Basic', basic('admin', ADMIN_TOKEN)],
  ])('responds with 401 to %s', async (_, headers) => {
    expectInvalidClient(await introspect(customer.access_token, headers));
    if (headers.authorization) expectInvalidClient(await manage(service, 'POST', INTROSPECT, headers, 'no JSON'));
  });

  it('responds with 401 to a token as credentials', async () => {
    expectInvalidClient(await introspect(customer.access_token, bearer(customer.access_token)));
  });
});

describe('POST /oauth2/revoke', () => {
  const customerOfBackend = async () =>
    (await service.post(TOKEN, agentTokenBody({ client_id: ACME_BACKEND }), bearer(agentToken))).body.access_token;
  const expectRevoked = (response: TestResponse) =>
    expect({ status: response.status, text: response.text }).toEqual({ status: 200, text: '{}' });

  it('revokes a client’s own access tokens, of customers and agents', async () => {
    const token = await customerOfBackend();
    expectRevoked(await revoke(token));
    expect(await infoStatus(service, token)).toBe(401);
    expectInvalidToken(await podInfo(token));
    const ofAgent = await issueAgentToken(service, { clientId: ACME_BACKEND });
    expectRevoked(await revoke(ofAgent));
    expectInvalidToken(await service.post(TOKEN, agentTokenBody(), bearer(ofAgent)));
    expectRevoked(await revoke(token));
  });

  it('revokes an agent’s access token, but not its refresh family or other access tokens of the family', async () => {
    const first = await agentTokenPair(service);
    const second = (await refresh(service, first.refresh_token)).body;
    expectRevoked(await revoke(first.access_token));
    expectInvalidToken(await service.post(TOKEN, agentTokenBody(), bearer(first.access_token)));
    expect((await service.post(TOKEN, agentTokenBody(), bearer(second.access_token))).status).toBe(200);
    expect((await refresh(service, second.refresh_token)).status).toBe(200);
  });

  it('revokes no token of another client, and gives the same response', async () => {
    const pair = await agentTokenPair(service);
    const token = await customerOfBackend();
    const other = basic(ACME_NO_COOKIES, BACKEND_SECRET);
    for (const each of [token, pair.access_token, pair.refresh_token]) expectRevoked(await revoke(each, other));
    expectRevoked(await revoke(customer.access_token));
    expect(await infoStatus(service, token)).toBe(200);
    expect(await infoStatus(service, customer.access_token)).toBe(200);
    expect((await service.post(TOKEN, agentTokenBody(), bearer(pair.access_token))).status).toBe(200);
    expect((await refresh(service, pair.refresh_token)).status).toBe(200);
  });

  it('gives the same response to a text that is no valid token', async () => {
    const code = await transferToken(service, customer.access_token, { client_id: ACME_BACKEND });
    for (const token of ['x', code, UNKNOWN_CUSTOMER_ID, `${await customerOfBackend()}x`])
      expectRevoked(await revoke(token));
    expect((await redeem(service, code, { client_id: ACME_BACKEND })).status).toBe(200);
    const token = await customerOfBackend();
    service.clock.advance({ seconds: TTL_SECONDS });
    expectRevoked(await revoke(token));
  });

  it.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong secret', basic(ACME_BACKEND, 'wrong')],
    ['a web application, which has no secret', basic(ACME_SITE, '')],
    ['the credentials of a resource server', CHAT_API],
    ['a wrong operator token', bearer('wrong-admin-token')],
  ])('responds with 401 to %s, and revokes nothing', async (_, headers) => {
    const token = await customerOfBackend();
    expectInvalidClient(await revoke(token, headers));
    expectInvalidClient(await manage(service, 'POST', REVOKE, headers, { token, client_id: ACME_BACKEND }));
    expect(await infoStatus(service, token)).toBe(200);
  });
});

describe.each([
  [INTROSPECT, { client_id: 'customer-chat-api', client_secret: SERVER_SECRET }, CHAT_API],
  [REVOKE, { client_id: ACME_BACKEND, client_secret: BACKEND_SECRET }, BACKEND],
])('%s with client_secret_post', (path, credentials, asBasic) => {
  const send = (body: object, headers: Record<string, string> = {}) =>
    manage(service, 'POST', path, headers, { token: customer.access_token, ...body });
  const expectEffect = (response: TestResponse) => {
    expect(response.status).toBe(200);
    expect(response.text).toMatch(path === INTROSPECT ? /^\{"active":true,/ : /^\{\}$/);
  };

  it('accepts the credentials in JSON and in a form', async () => {
    expectEffect(await send(credentials));
    const form = new URLSearchParams({ token: customer.access_token, ...credentials }).toString();
    expectEffect(await manage(service, 'POST', path, { 'content-type': FORM }, form));
  });

  it.each([
    ['a wrong secret', { client_secret: 'wrong' }],
    ['no secret', { client_secret: undefined }],
    ['a client without a secret', { client_id: ACME_SITE }],
  ])('responds with 401 to %s', async (_case, changed) => {
    expectInvalidClient(await send({ ...credentials, ...changed }));
  });

  it('rejects a request that authenticates in two ways, as one caller or as two', async () => {
    expectInvalidRequest(await send(credentials, asBasic), /^client_secret: given twice/);
    expectInvalidRequest(await send(credentials, OPERATOR), /^client_secret: given in addition/);
    expectInvalidRequest(await send({ client_id: 'another' }, asBasic), /^client_id: must equal/);
    expectInvalidClient(await send(credentials, { authorization: 'Basic !!!' }));
    expectInvalidClient(await send(credentials, bearer('wrong-admin-token')));
  });

  it('rejects a body that is not JSON, and credentials of a wrong type', async () => {
    const noJson = await manage(service, 'POST', path, {}, 'no JSON');
    expect([noJson.status, noJson.body.error_description]).toEqual([400, 'Invalid message']);
    expectInvalidRequest(await send({ ...credentials, client_secret: 1 }), 'client_secret: must be a string');
    expectInvalidRequest(await send({ ...credentials, client_secret: '' }), 'client_secret: must not be empty');
  });

  it('reads no credentials from the query', async () => {
    const query = new URLSearchParams(credentials).toString();
    const response = await manage(service, 'POST', `${path}?${query}`, {}, { token: customer.access_token });
    expectInvalidClient(response);
  });
});

describe.each([
  [INTROSPECT, CHAT_API],
  [REVOKE, BACKEND],
])('%s', (path, as) => {
  it('accepts a form and JSON, and ignores unknown parameters', async () => {
    const form = new URLSearchParams({ token: customer.access_token, token_type_hint: 'refresh_token' }).toString();
    for (const [body, type] of [
      [form, FORM],
      [JSON.stringify({ token: customer.access_token, token_type_hint: 0 }), 'application/json'],
      [JSON.stringify({ token: customer.access_token }), FORM],
    ] as const) {
      const response = await manage(service, 'POST', path, { ...as, 'content-type': type }, body);
      expect(response.status).toBe(200);
      expect(response.text).toMatch(path === INTROSPECT ? /^\{"active":true,/ : /^\{\}$/);
    }
  });

  it('responds with 400 to a token of more than 8192 characters', async () => {
    expectInvalidRequest(await manage(service, 'POST', path, as, { token: 'x'.repeat(8_193) }), /^token: /);
  });

  it('responds with 400 to a token given twice', async () => {
    expect((await manage(service, 'POST', path, as, '{"token":"x","token":"y"}')).status).toBe(400);
    const response = await manage(service, 'POST', path, { ...as, 'content-type': FORM }, 'token=x&token=y');
    expect(response).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
  });
});

async function erase(entityId: string, as: Record<string, string> = OPERATOR): Promise<TestResponse> {
  return manage(service, 'DELETE', `/admin/identities/${entityId}`, as);
}
const lookUp = (entityId: string, as: Record<string, string> = OPERATOR) =>
  manage(service, 'GET', `/admin/identities/${entityId}`, as);

describe('/admin/identities/:entity_id', () => {
  it('shows the operator a customer', async () => {
    const inGroup = await new TestBrowser(service).visit({}, `/v2/customer/${ACME}/sales/token`);
    const byAgent = await service.post(TOKEN, agentTokenBody(), bearer(agentToken));
    const id = expect.stringMatching(UUID_V7);
    const browsers = [{ id, last_seen_day: new Date(service.clock.now()).toISOString().slice(0, 10) }];
    for (const [{ entity_id }, more] of [
      [customer, { browser: true, browsers }],
      [inGroup.body, { browser: true, group_id: 'sales', browsers }],
      [byAgent.body, { browser: false, browsers: [] }],
    ]) {
      const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      const common = { entity_id, organization_id: ACME, created_at, refresh_families: [] };
      expect((await lookUp(entity_id)).body).toEqual({ ...common, ...more });
    }
  });

  it.each<[string, Record<string, string>]>([
    ['no token', {}],
    ['a wrong token', bearer('wrong-admin-token')],
    ['the secret of a resource server', CHAT_API],
  ])('responds with 401 to %s', async (_, headers) => {
    expectInvalidToken(await lookUp(customer.entity_id, headers));
    expectInvalidToken(await erase(customer.entity_id, headers));
    expect((await info(customer.access_token)).status).toBe(200);
  });

  it.each([UNKNOWN_CUSTOMER_ID, 'x', UNKNOWN_CUSTOMER_ID.toUpperCase()])('responds with 404 to %s', async (id) => {
    for (const response of [await lookUp(id), await erase(id)])
      expectError(response, { status: 404, error: 'not_found', hint: undefined });
  });
});

describe('the erasure of a customer', () => {
  it('revokes its tokens at once, of every grant and in every process, and makes its id unknown', async () => {
    const transferred = (await redeem(service, await transferToken(service, customer.access_token))).body;
    const { entity_id } = customer;
    const byAgent = (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agentToken))).body;
    const { status, text } = await erase(entity_id);
    expect({ status, text }).toEqual({ status: 200, text: '{}' });
    for (const { access_token } of [customer, transferred, byAgent]) {
      expectInvalidToken(await info(access_token));
      expectInvalidToken(await podInfo(access_token));
      expectInactive(await introspect(access_token));
    }
    const byAgentAgain = await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agentToken));
    expectInvalidRequest(byAgentAgain, 'entity_id: unknown');
    const body = transferBody({ bearer_type: 'agent', customer_id: entity_id });
    expectInvalidRequest(await service.post(TRANSFER, body, bearer(agentToken)), 'customer_id: unknown');
    for (const response of [await lookUp(entity_id), await erase(entity_id)]) expect(response.status).toBe(404);
  });

  it('during parallel requests of the browser revokes the old tokens, and the new ones work', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const visits = Array.from({ length: 12 }, () => browser.visit());
    expect((await erase(entity_id)).status).toBe(200);
    const concurrentVisits = Array.from({ length: 4 }, () => browser.visit());
    for (const { status, body } of await Promise.all([...visits, ...concurrentVisits])) {
      expect(status).toBe(200);
      expect(await infoStatus(service, body.access_token)).toBe(body.entity_id === entity_id ? 401 : 200);
    }
    const ids = new Set((await Promise.all(concurrentVisits)).map(({ body }) => body.entity_id));
    expect(ids.size).toBe(1);
    expect(ids).not.toContain(entity_id);
  });
});

describe('GET /.well-known/oauth-authorization-server', () => {
  it('returns the metadata that a client library needs (RFC 8414), and offers only S256', async () => {
    const { status, body, headers } = await service.send('GET', '/.well-known/oauth-authorization-server');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      issuer: claimsOf(customer.access_token).iss,
      authorization_endpoint: 'https://auth.example/',
      token_endpoint: 'https://auth.example/v2/token',
      jwks_uri: 'https://auth.example/.well-known/jwks.json',
      response_types_supported: ['code', 'token'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    });
    expect(headers.get('access-control-allow-origin')).toBe('*');
    const [, seconds] = /\bmax-age=(\d+)/.exec(headers.get('cache-control') ?? '') ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(60);
    expect(Number(seconds)).toBeLessThan(3_600);
  });

  it('names the endpoints of the management port, with their methods, on the management port only', async () => {
    const methods = ['client_secret_basic', 'client_secret_post'];
    const { body, headers } = await manage(service, 'GET', '/.well-known/oauth-authorization-server');
    const { body: ofPublicPort } = await service.send('GET', '/.well-known/oauth-authorization-server');
    expect(JSON.stringify(ofPublicPort)).not.toMatch(/introspect|revo|oauth2/);
    expect(body).toEqual({
      ...ofPublicPort,
      introspection_endpoint: service.managementUrl + INTROSPECT,
      introspection_endpoint_auth_methods_supported: methods,
      revocation_endpoint: service.managementUrl + REVOKE,
      revocation_endpoint_auth_methods_supported: methods,
    });
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('access-control-allow-origin')).toBeNull();
    const found = await request(body.introspection_endpoint, {
      method: 'POST',
      headers: CHAT_API,
      body: JSON.stringify({ token: customer.access_token }),
    });
    expect(found.body.active).toBe(true);
  });
});

// This block is last: the last service that starts in a process verifies the bearer tokens of all.
describe.runIf(onMariadb)('while the database is unreachable', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  afterAll(async () => {
    await proxy?.close();
    await database?.remove();
  });
  const serviceBehindProxy = useService(async () => {
    database = await createTestDatabase();
    proxy = await startTcpProxy(database.url);
    const environment = { ADMIN_TOKEN, DATABASE_URL: proxy.through(database.url) };
    return { registry, database, environment };
  });
  let token: string;
  beforeAll(async () => {
    const body = cookieBody({ client_id: ACME_BACKEND });
    token = (await serviceBehindProxy.post(TOKEN, body)).body.access_token;
  });

  it.each<['cut' | 'freeze']>([['cut'], ['freeze']])(
    'every revocation, erasure and validation responds with 503: %s',
    async (outage) => {
      const { sub } = claimsOf(token) as { sub: string };
      await proxy[outage]();
      const responses = await Promise.all([
        manage(serviceBehindProxy, 'POST', REVOKE, BACKEND, { token }),
        manage(serviceBehindProxy, 'POST', REVOKE, BACKEND, { token: UNKNOWN_REFRESH_TOKEN }),
        manage(serviceBehindProxy, 'POST', REVOKE, OPERATOR, { token }),
        manage(serviceBehindProxy, 'POST', INTROSPECT, CHAT_API, { token }),
        manage(serviceBehindProxy, 'DELETE', `/admin/identities/${sub}`, OPERATOR),
        serviceBehindProxy.send('DELETE', TOKEN, bearer(token)),
        serviceBehindProxy.send('GET', INFO, bearer(token)),
        serviceBehindProxy.post(TRANSFER, transferBody(), bearer(token)),
        redeem(serviceBehindProxy, 'dev:x'),
      ]);
      await proxy.restore();
      for (const response of responses) {
        expectError(response, { status: 503, error: 'temporarily_unavailable', hint: undefined });
        expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
      }
      await expect.poll(() => infoStatus(serviceBehindProxy, token)).toBe(200);
    },
  );

  it('wrong credentials still get 401', async () => {
    await proxy.cut();
    const response = await manage(serviceBehindProxy, 'POST', REVOKE, basic(ACME_BACKEND, 'wrong'), { token });
    await proxy.restore();
    expectInvalidClient(response);
  });

  it('no state is lost: revocation works when the database is reachable again', async () => {
    await expect.poll(() => infoStatus(serviceBehindProxy, token)).toBe(200);
    expect((await manage(serviceBehindProxy, 'POST', REVOKE, BACKEND, { token })).status).toBe(200);
    expect(await infoStatus(serviceBehindProxy, token)).toBe(401);
  });
});
