import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { generateKey, type PrivateKeySet } from '../../src/access-token/key-set.js';
import { agentTokenBody, claimsOf, refresh } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { endSessionsAsOperator } from '../support/end-sessions.js';
import { expectInvalidClient, expectInvalidRequest, expectInvalidToken } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
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
  UNKNOWN_CUSTOMER,
} from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { FILE_CHECK_PAUSE_MS, shortenPauses } from '../support/timers.js';
import {
  agentTokenPair,
  everythingIn,
  INFO,
  infoStatus,
  newCustomer,
  redeem,
  TRANSFER,
  transferBody,
  transferToken,
} from '../support/transfers.js';
import { ADMIN_TOKEN, ADMIN_TOKENS, useService } from '../support/use-service.js';

const INTROSPECT = '/oauth2/introspect';
const REVOKE = '/oauth2/revoke';
const TTL_SECONDS = 28_800;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
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

const service = useService({
  registry,
  environment: { ADMIN_TOKENS: `old:support:${OLD_ADMIN_TOKEN},${ADMIN_TOKENS}` },
});
/** Another process on the same database. */
const other = useService(() => ({ registry, database: service.database }));
let customer: { entity_id: string; access_token: string };
let agentToken: string;
beforeEach(async () => {
  customer = await newCustomer(service);
  agentToken = await issueAgentToken(service);
});

const info = (token: string, headers: Record<string, string> = {}) =>
  service.send('GET', INFO, { ...bearer(token), ...headers });
const end = (token: string, headers: Record<string, string> = {}) =>
  service.send('DELETE', TOKEN, { ...bearer(token), ...headers });
const introspect = (token: unknown, as: Record<string, string> = CHAT_API) =>
  manage(service, 'POST', INTROSPECT, as, { token });
const revoke = (token: unknown, as: Record<string, string> = BACKEND) => manage(service, 'POST', REVOKE, as, { token });
const otherInfo = (token: string) => other.send('GET', INFO, bearer(token));

function expectInactive(response: TestResponse): void {
  expect({ status: response.status, text: response.text }).toEqual({ status: 200, text: '{"active":false}' });
}

describe('GET /v2/customer/info', () => {
  it('returns exactly the fields of protocol §4.11 for a customer token of any grant', async () => {
    const byAgent = await service.post(TOKEN, agentTokenBody({ client_id: PUBLIC_SITE }), bearer(agentToken));
    const transferred = await redeem(service, await transferToken(service, customer.access_token));
    const { sub, client_id: agentClient, sid } = claimsOf(agentToken);
    const act = { sub, sid, ep: 0, client_id: agentClient };
    for (const [token, client_id, entity_id, more] of [
      [customer.access_token, ACME_SITE, customer.entity_id, { gty: 'cookie' }],
      [byAgent.body.access_token, PUBLIC_SITE, byAgent.body.entity_id, { gty: 'agent_token', act }],
      [transferred.body.access_token, ACME_SITE, customer.entity_id, { gty: 'identity_token' }],
    ]) {
      const { status, body, cookies } = await info(token);
      expect({ status, cookies }).toEqual({ status: 200, cookies: [] });
      expect(body).toEqual({
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
    for (const left of [TTL_SECONDS, 10]) {
      service.clock.advance({ seconds: TTL_SECONDS - left });
      const { expires_in } = (await info(customer.access_token)).body;
      expect(Number.isInteger(expires_in)).toBe(true);
      expect(expires_in).toBeLessThanOrEqual(left);
      expect(expires_in).toBeGreaterThan(left - 5);
    }
    service.clock.advance({ seconds: 10 });
    expectInvalidToken(await info(customer.access_token));
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
  it('stores no token in the database', async () => {
    await end(customer.access_token);
    const all = await everythingIn(service);
    expect(all).toContain(claimsOf(customer.access_token).sid);
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

  it.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong secret', basic('customer-chat-api', 'wrong')],
    ['the credentials of a client application', BACKEND],
    ['a wrong operator token', bearer('wrong-admin-token')],
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
    expectInvalidToken(await otherInfo(token));
    const ofAgent = await issueAgentToken(service, { clientId: ACME_BACKEND });
    expectRevoked(await revoke(ofAgent));
    expectInvalidToken(await service.post(TOKEN, agentTokenBody(), bearer(ofAgent)));
    expectRevoked(await revoke(token));
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
    for (const token of ['x', code, UNKNOWN_CUSTOMER, `${await customerOfBackend()}x`])
      expectRevoked(await revoke(token));
    expect((await redeem(service, code, { client_id: ACME_BACKEND })).status).toBe(200);
    const token = await customerOfBackend();
    service.clock.advance({ seconds: TTL_SECONDS });
    expectRevoked(await revoke(token));
  });

  it.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong secret', basic(ACME_BACKEND, 'wrong')],
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
  it('responds with 400 to a token of more than 8192 characters', async () => {
    expectInvalidRequest(await send({ ...credentials, token: 'x'.repeat(8_193) }), /^token: /);
  });

  it('rejects a request that authenticates in two ways, as one caller or as two', async () => {
    expectInvalidRequest(await send(credentials, asBasic), /^client_secret: given twice/);
    expectInvalidRequest(await send(credentials, OPERATOR), /^client_secret: given in addition/);
    expectInvalidRequest(await send({ client_id: 'another' }, asBasic), /^client_id: must equal/);
    expectInvalidClient(await send(credentials, { authorization: 'Basic !!!' }));
    expectInvalidClient(await send(credentials, bearer('wrong-admin-token')));
  });

  it('reads no credentials from the query', async () => {
    const query = new URLSearchParams(credentials).toString();
    const response = await manage(service, 'POST', `${path}?${query}`, {}, { token: customer.access_token });
    expectInvalidClient(response);
  });
});

/** What each kind of request says about a customer token. */
async function responsesTo(token: string) {
  const introspection = await service.admin('POST', '/oauth2/introspect', { token });
  const transfer = await service.post(TRANSFER, transferBody(), bearer(token));
  return {
    info: await infoStatus(service, token),
    transfer: transfer.status,
    active: introspection.body.active,
    reason: introspection.body.inactive_reason,
  };
}

/** A customer whose token all kinds of requests have accepted. */
async function customerWithVerifiedToken(): Promise<typeof customer> {
  for (let use = 0; use < 2; use++)
    expect(await responsesTo(customer.access_token)).toEqual({ info: 200, transfer: 200, active: true });
  return customer;
}

describe('an access token that was verified before', () => {
  it.each<[string, string, (of: typeof customer) => Promise<{ status: number }>]>([
    ['its holder', 'revoked', ({ access_token }) => other.send('DELETE', TOKEN, bearer(access_token))],
    ['the operator', 'revoked', ({ access_token: token }) => other.admin('POST', '/oauth2/revoke', { token })],
    [
      'the end of all sessions of its customer',
      'customer_generation',
      ({ entity_id }) => endSessionsAsOperator(other, ADMIN_TOKEN, entity_id),
    ],
  ])('is refused by each kind of request after it was ended by %s', async (_, reason, end) => {
    const verified = await customerWithVerifiedToken();
    expect((await end(verified)).status).toBe(200);
    const { access_token } = verified;
    expect(await responsesTo(access_token)).toEqual({ info: 401, transfer: 401, active: false, reason });
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status, 'ended already').toBe(200);
  });

  it('is refused after its key was removed, or replaced by another key with the same kid', async () => {
    shortenPauses(FILE_CHECK_PAUSE_MS);
    const path = join(service.database.folder, 'keys.json');
    const before = readFileSync(path, 'utf8');
    const { keys } = JSON.parse(before) as PrivateKeySet;
    const added = generateKey(0);
    const sameKid = { ...generateKey(0), kid: String(keys[0]?.kid) };
    const { access_token } = await customerWithVerifiedToken();
    for (const [changed, reason] of [
      [sameKid, 'invalid_signature'],
      [added, 'unknown_key'],
    ] as const) {
      writeFileSync(path, JSON.stringify({ keys: [changed] }));
      await expect.poll(() => responsesTo(access_token)).toEqual({ info: 401, transfer: 401, active: false, reason });
    }
    writeFileSync(path, before);
    await expect.poll(() => infoStatus(service, access_token)).toBe(200);
  });
});

it('/admin/customers/:entity_id shows the operator a customer', async () => {
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
    const common = { entity_id, organization_id: ACME, created_at, refresh_tokens: [] };
    expect((await service.admin('GET', `/admin/customers/${entity_id}`)).body).toEqual({ ...common, ...more });
  }
});

describe('GET /.well-known/oauth-authorization-server', () => {
  it('returns the metadata that a client library needs (RFC 8414), and offers only S256', async () => {
    const { body, headers } = await service.send('GET', '/.well-known/oauth-authorization-server');
    expect(body).toMatchObject({
      issuer: 'https://auth.example',
      authorization_endpoint: 'https://auth.example/',
      token_endpoint: 'https://auth.example/v2/token',
      jwks_uri: 'https://auth.example/.well-known/jwks.json',
      response_types_supported: ['code', 'token'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    });
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('cache-control')).toMatch(/\bmax-age=\d{2,3}$/);
  });

  it('names the endpoints of the management port, with their methods, on the management port only', async () => {
    const methods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'];
    const algorithms = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'];
    const { body, headers } = await manage(service, 'GET', '/.well-known/oauth-authorization-server');
    const { body: ofPublicPort } = await service.send('GET', '/.well-known/oauth-authorization-server');
    expect(JSON.stringify(ofPublicPort)).not.toMatch(/introspect|revo|oauth2/);
    expect(body).toEqual({
      ...ofPublicPort,
      introspection_endpoint: service.managementUrl + INTROSPECT,
      introspection_endpoint_auth_methods_supported: methods,
      introspection_endpoint_auth_signing_alg_values_supported: algorithms,
      revocation_endpoint: service.managementUrl + REVOKE,
      revocation_endpoint_auth_methods_supported: methods,
      revocation_endpoint_auth_signing_alg_values_supported: algorithms,
    });
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('access-control-allow-origin')).toBeNull();
  });
});
