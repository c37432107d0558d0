import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { RegistryDocument } from '../../packages/conformance-kit/src/registry-file.js';
import { RefreshFamily } from '../../src/refresh-token/refresh-family.entity.js';
import { RegistryFile } from '../../src/registry/file/registry-file.js';
import {
  AS_BACKEND,
  agentTokenBody,
  askToken,
  claimsOf,
  exchangeCode,
  pkce,
  refresh,
} from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import {
  AgentBrowser,
  BACKEND_CALLBACK,
  codeOf,
  FOR_NATIVE,
  FORM,
  NATIVE_CALLBACK,
} from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { failAtEachStatement, OUTAGE } from '../support/dying-transactions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest, INVALID_MESSAGE } from '../support/expect-error.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_SITE,
  BACKEND_SECRET,
  RIVAL,
  testRegistry,
  writeRegistry,
} from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { ageRedemption, ageRotation } from '../support/transfers.js';
import { serviceOfTest } from '../support/use-service.js';

const NOT_AUTHORIZED = 'The client is not authorized to request a token using this method';
const UNKNOWN_CUSTOMER_ID = '01890000-0000-7000-8000-000000000000';
const ENDPOINT = '/v2/token';
const THIRTY_DAYS_SECONDS = 2_592_000;
/** Another application of the same organization. Its secret must be encoded in Basic credentials. */
const OTHER = { client_id: 'acme-other~1', client_secret: 'a+b%c:d e/ü" and more characters of it' };
/** An application with one more scope. */
const SCOPED = { client_id: 'acme-scoped', client_secret: BACKEND_SECRET };
const OTHER_CALLBACK = 'https://other.acme.example/callback';
const AS_NATIVE = { client_id: ACME_NATIVE, client_secret: undefined, redirect_uri: NATIVE_CALLBACK };

const registry = testRegistry();
registry.clients.push({
  ...OTHER,
  ...{ name: 'Other', client_type: 'server', organization_id: ACME, scopes: ['customers:own'] },
  redirect_uris: [OTHER_CALLBACK, BACKEND_CALLBACK],
});
registry.clients.push({
  ...SCOPED,
  ...{ name: 'Scoped', client_type: 'server', organization_id: ACME, scopes: ['customers:own', 'agents:read'] },
  redirect_uris: [OTHER_CALLBACK],
});
registry.agents[0] = { ...registry.agents[0], scopes: ['customers:own', 'agents:read', 'reports:read'] };

let service: TestService;
let browser: AgentBrowser;
beforeAll(async () => {
  service = await startTestService({ registry });
  browser = new AgentBrowser(service);
});
afterAll(() => service?.stop());
afterEach(() => vi.restoreAllMocks());

describe('the exchange of an authorization code', () => {
  it('responds with a pair of tokens and exactly the fields of protocol §6.8', async () => {
    const response = await exchangeCode(service, await codeOf(browser));
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      access_token: expect.stringMatching(/^dev:[\w-]+\.[\w-]+\.[\w-]+$/),
      token_type: 'Bearer',
      expires_in: 28_800,
      scope: 'customers:own',
      refresh_token: expect.stringMatching(/^dev:[\w-]{22}\.[\w-]{43}$/),
      account_id: claimsOf(response.body.access_token).sub,
      organization_id: ACME,
    });
    expect(claimsOf(response.body.access_token)).toMatchObject({
      ...{ aud: 'agent-api', client_id: ACME_BACKEND, organization_id: ACME, scope: 'customers:own' },
    });
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.cookies).toEqual([]);
    expect(await isValid(response.body.access_token)).toBe(true);
  });

  it.each<[string, (fields: Record<string, string>) => [string, Record<string, string>]]>([
    ['client_secret_basic and a form', (fields) => [form(fields), { ...basic(), 'content-type': FORM }]],
    [
      'client_secret_basic and JSON',
      (fields) => [JSON.stringify(fields), { ...basic(), 'content-type': 'text/plain' }],
    ],
    [
      'client_secret_basic and the same client_id',
      (fields) => [form({ ...fields, client_id: ACME_BACKEND }), basic(FORM)],
    ],
    ['client_secret_post and a form', (fields) => [form({ ...fields, ...AS_BACKEND }), { 'content-type': FORM }]],
    ['client_secret_post and JSON', (fields) => [JSON.stringify({ ...fields, ...AS_BACKEND }), {}]],
    [
      'a form whose type names a charset',
      (fields) => [form({ ...fields, ...AS_BACKEND }), { 'content-type': `${FORM}; charset=UTF-8` }],
    ],
  ])('accepts %s', async (_, request) => {
    const code = await codeOf(browser);
    const fields = { grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK };
    expect((await service.post(ENDPOINT, ...request(fields))).status).toBe(200);
  });

  it('accepts a secret with any characters, encoded as in RFC 6749 §2.3.1', async () => {
    const code = await codeOf(browser, { client_id: OTHER.client_id, redirect_uri: OTHER_CALLBACK });
    const fields = form({ grant_type: 'authorization_code', code, redirect_uri: OTHER_CALLBACK });
    expect((await service.post(ENDPOINT, fields, basic(FORM, OTHER))).status).toBe(200);
  });

  it('accepts a native application without a secret that proves itself by PKCE', async () => {
    const { verifier, asked } = pkce();
    const code = await codeOf(browser, { ...FOR_NATIVE, ...asked });
    const response = await exchangeCode(service, code, { ...AS_NATIVE, code_verifier: verifier });
    expect(response).toMatchObject({ status: 200, body: { organization_id: ACME } });
    const again = await refresh(service, response.body.refresh_token, AS_NATIVE);
    expect(again.status).toBe(200);
  });

  it('accepts PKCE from a server application too', async () => {
    const { verifier, asked } = pkce();
    const response = await exchangeCode(service, await codeOf(browser, asked), { code_verifier: verifier });
    expect(response.status).toBe(200);
  });
});

describe('a client that is not authenticated', () => {
  const encoded = (text: string | Buffer) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['no client at all', {}, {}],
    ['no secret', { client_id: ACME_BACKEND }, {}],
    ['a wrong secret', { client_id: ACME_BACKEND, client_secret: 'wrong' }, {}],
    ['an unknown client', { client_id: 'nobody', client_secret: BACKEND_SECRET }, {}],
    ['a secret of a native application', { client_id: ACME_NATIVE, client_secret: 'x' }, {}],
    ['a wrong secret by Basic', {}, encoded(`${ACME_BACKEND}:wrong`)],
    ['a bearer', { ...AS_BACKEND }, { authorization: 'Bearer x' }],
  ])('is refused for every grant: %s', async (_, fields, headers) => {
    const code = await codeOf(browser);
    for (const grant of [{ grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK }, {}]) {
      const response = await service.post(ENDPOINT, form({ ...grant, ...fields }), {
        'content-type': FORM,
        ...headers,
      });
      expectError(response, { status: 401, error: 'invalid_client', hint: undefined });
      expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm="[^"]+"$/);
    }
    expect((await exchangeCode(service, code)).status).toBe(200);
  });

  it('is refused with a hint if it authenticates in two ways or as two clients', async () => {
    const both = await service.post(ENDPOINT, form({ client_secret: BACKEND_SECRET }), basic(FORM));
    expectInvalidRequest(both, /^client_secret: given twice/);
    expectInvalidRequest(await service.post(ENDPOINT, form({ client_id: ACME_NATIVE }), basic(FORM)), /^client_id: /);
  });

  it('is refused if it is a web application, which gets its tokens at the authorization page', async () => {
    const response = await askToken(service, {
      client_id: ACME_SITE,
      client_secret: undefined,
      grant_type: 'refresh_token',
    });
    const expected = { status: 400, error: 'unauthorized_client', description: NOT_AUTHORIZED, hint: /^client_id: / };
    expectError(response, expected);
  });
});

describe('an exchange that does not match its authorization code', () => {
  it.each<[string, (code: string) => Promise<TestResponse>]>([
    ['another client', (code) => exchangeCode(service, code, { ...OTHER })],
    ['another redirect_uri', (code) => exchangeCode(service, code, { redirect_uri: `${BACKEND_CALLBACK}/` })],
    ['a redirect_uri of another client', (code) => exchangeCode(service, code, { redirect_uri: OTHER_CALLBACK })],
    ['a verifier without a challenge', (code) => exchangeCode(service, code, { code_verifier: pkce().verifier })],
  ])('is refused and leaves the code valid: %s', async (_, send) => {
    const code = await codeOf(browser);
    const wrong = await send(code);
    expectInvalidGrant(wrong);
    const right = await exchangeCode(service, code);
    expect(right.status).toBe(200);
    expectInvalidGrant(await send(code));
    expect(await isValid(right.body.access_token), 'nothing is revoked either').toBe(true);
  });

  it.each<[string, string | undefined, string?]>([
    ['none', undefined],
    ['another', pkce().verifier],
    ['the challenge', 'the challenge'],
    ['an empty one', ''],
  ])('is refused without consuming the code, for the code_verifier: %s', async (_, presented, asked) => {
    const { verifier, asked: challenge } = pkce(asked);
    const code = await codeOf(browser, challenge);
    const code_verifier = presented === 'the challenge' ? challenge.code_challenge : presented;
    const fields = { grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK, ...AS_BACKEND };
    const body = { ...fields, ...(code_verifier !== undefined && { code_verifier }) };
    for (let n = 0; n < 3; n++) expectInvalidGrant(await service.post(ENDPOINT, form(body), { 'content-type': FORM }));
    const right = await exchangeCode(service, code, { code_verifier: verifier });
    expect(right.status).toBe(asked === undefined ? 200 : 400);
  });
});

describe('an authorization code', () => {
  it('expires after five minutes', async () => {
    const [early, later] = [await codeOf(browser), await codeOf(browser)];
    service.clock.advance({ seconds: 298 });
    expect((await exchangeCode(service, early)).status).toBe(200);
    service.clock.advance({ seconds: 3 });
    expectInvalidGrant(await exchangeCode(service, later));
  });

  it('is not another kind of token, and not the same code in another spelling', async () => {
    const { access_token, refresh_token } = (await exchangeCode(service, await codeOf(browser))).body;
    const code = await codeOf(browser);
    const body = { bearer_type: 'agent', client_id: ACME_BACKEND, customer_id: await newCustomer(access_token) };
    const transfer = await service.post('/v2/customer/identity_transfer', body, bearer(access_token));
    const others = [transfer.body.identity_transfer_token, access_token, refresh_token];
    for (const other of [...others, 'x', code.replace('dev:', ''), code.toLowerCase(), `${code} `, ` ${code}`])
      expectInvalidGrant(await exchangeCode(service, other));
    expect((await exchangeCode(service, code)).status).toBe(200);
  });

  it('stays usable if its exchange fails at any statement of the transaction, which stores nothing', async () => {
    const code = await codeOf(browser);
    const families = service.application.get(DataSource).getRepository(RefreshFamily);
    const before = await families.count();
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      expect((await exchangeCode(service, code)).status).toBe(hasFailed() ? 503 : 200);
      expect(await families.count()).toBe(hasFailed() ? before : before + 1);
    });
    expect(errors, 'before and after each of two statements').toBe(4);
  });

  it('stays usable if the agent can grant nothing at the time of the exchange', async () => {
    const code = await codeOf(browser, { client_id: SCOPED.client_id, redirect_uri: OTHER_CALLBACK });
    const fields = { ...SCOPED, redirect_uri: OTHER_CALLBACK };
    await withRegistry({ ...registry, clients: withScopes(registry.clients, SCOPED.client_id, ['none']) }, async () =>
      expectInvalidGrant(await exchangeCode(service, code, fields)),
    );
    expect((await exchangeCode(service, code, fields)).status).toBe(200);
  });

  it('is refused when it is replayed, and the replay revokes the tokens of the first exchange', async () => {
    const { verifier, asked } = pkce();
    const code = await codeOf(browser, asked);
    const exchange = (more = {}) => exchangeCode(service, code, { code_verifier: verifier, ...more });
    const first = await exchange();
    const refreshed = await refresh(service, first.body.refresh_token);
    const unrelated = (await exchangeCode(service, await codeOf(browser))).body;
    for (const wrong of [{ ...OTHER }, { code_verifier: pkce().verifier }]) expectInvalidGrant(await exchange(wrong));
    expect(await isValid(first.body.access_token)).toBe(true);
    await ageRedemption(service, code, 3);
    expectInvalidGrant(await exchange());
    expect(await isValid(first.body.access_token)).toBe(false);
    expect(await isValid(refreshed.body.access_token)).toBe(false);
    expectInvalidGrant(await refresh(service, refreshed.body.refresh_token));
    expect(await isValid(unrelated.access_token)).toBe(true);
    expect((await refresh(service, unrelated.refresh_token)).status).toBe(200);
  });
});

describe('a refresh', () => {
  it('may narrow the scope for one access token and never widens it', async () => {
    const fields = { ...SCOPED, redirect_uri: OTHER_CALLBACK };
    const code = await codeOf(browser, { client_id: SCOPED.client_id, redirect_uri: OTHER_CALLBACK });
    const first = (await exchangeCode(service, code, fields)).body;
    expect(first.scope).toBe('customers:own agents:read');
    const less = (await refresh(service, first.refresh_token, { ...SCOPED, scope: 'agents:read' })).body;
    expect(less.scope).toBe('agents:read');
    expect(claimsOf(less.access_token).scope).toBe('agents:read');
    for (const scope of ['agents:read reports:read', 'nothing', ' '])
      expectInvalidRequest(await refresh(service, less.refresh_token, { ...SCOPED, scope }), /^scope: /);
    // An error response does not shorten the replay window of the next attempt.
    const all = await afterSeconds(11, () => refresh(service, less.refresh_token, SCOPED));
    expect(all.body.scope).toBe('customers:own agents:read');
  });

  it('grants only the scopes that the application is registered for at the time of the refresh', async () => {
    const code = await codeOf(browser, { client_id: SCOPED.client_id, redirect_uri: OTHER_CALLBACK });
    const first = (await exchangeCode(service, code, { ...SCOPED, redirect_uri: OTHER_CALLBACK })).body;
    await withRegistry(
      { ...registry, clients: withScopes(registry.clients, SCOPED.client_id, ['agents:read']) },
      async () => {
        const next = await refresh(service, first.refresh_token, SCOPED);
        expect(next.body.scope).toBe('agents:read');
      },
    );
  });

  it.each([
    ['scopes', { scopes: ['agents:read'] }],
    ['organization', { organization_id: RIVAL }],
  ])('is refused after a change of the agent’s %s, which revokes the access tokens too', async (_, change) => {
    const first = (await exchangeCode(service, await codeOf(browser))).body;
    const [agent, ...others] = registry.agents;
    await withRegistry({ ...registry, agents: [{ ...agent, ...change }, ...others] }, async () => {
      expectInvalidGrant(await refresh(service, first.refresh_token));
      expect(await isValid(first.access_token)).toBe(false);
    });
  });

  it('issues the next pair for the same agent, organization and scope', async () => {
    const first = (await exchangeCode(service, await codeOf(browser))).body;
    const response = await refresh(service, first.refresh_token);
    expect(response.status).toBe(200);
    expect(Object.keys(response.body)).toEqual(Object.keys(first));
    const { access_token, refresh_token, ...same } = response.body;
    expect(first).toMatchObject(same);
    expect(access_token).not.toBe(first.access_token);
    expect(refresh_token).not.toBe(first.refresh_token);
    expect(await isValid(access_token)).toBe(true);
    expect(await isValid(first.access_token)).toBe(true);
  });

  it('works without a time limit as long as no pause is longer than 30 days', async () => {
    let token = await firstRefreshToken();
    for (let n = 0; n < 3; n++) {
      service.clock.advance({ seconds: THIRTY_DAYS_SECONDS - 10 });
      token = (await refresh(service, token)).body.refresh_token;
    }
    service.clock.advance({ seconds: THIRTY_DAYS_SECONDS + 1 });
    expectInvalidGrant(await refresh(service, token));
  });

  it.each([0, 9, 119])('that is repeated after %i s gets the same successor', async (seconds) => {
    const token = await firstRefreshToken();
    const lost = await refresh(service, token);
    await ageRotation(service, token, seconds);
    const again = await refresh(service, token);
    expect(again.status).toBe(200);
    expect(again.body.refresh_token).toBe(lost.body.refresh_token);
    expect(again.body.access_token).not.toBe(lost.body.access_token);
    const next = await refresh(service, again.body.refresh_token);
    expect(next.status).toBe(200);
    expect((await refresh(service, next.body.refresh_token)).status).toBe(200);
  });

  it('that is repeated after two minutes revokes the family and its access tokens', async () => {
    const first = (await exchangeCode(service, await codeOf(browser))).body;
    const next = await refresh(service, first.refresh_token);
    await ageRotation(service, first.refresh_token, 121);
    expectInvalidGrant(await refresh(service, first.refresh_token));
    expectInvalidGrant(await refresh(service, next.body.refresh_token));
    expect(await isValid(first.access_token)).toBe(false);
    expect(await isValid(next.body.access_token)).toBe(false);
  });

  it('that is sent twenty times in parallel gets one successor, in each response', async () => {
    const token = await firstRefreshToken();
    const responses = await Promise.all(Array.from({ length: 20 }, () => refresh(service, token)));
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    expect(new Set(responses.map(({ body }) => body.refresh_token)).size).toBe(1);
    const family = await familyOf(responses[0]?.body.access_token);
    expect(family).toMatchObject({ endedAt: null, rotations: 1 });
    const next = await refresh(service, responses[0]?.body.refresh_token);
    expect(next.status).toBe(200);
    expect(await isValid(next.body.access_token)).toBe(true);
  });

  it('by another client is refused and revokes nothing', async () => {
    const token = await firstRefreshToken();
    expectInvalidGrant(await refresh(service, token, { ...OTHER }));
    expectInvalidGrant(await refresh(service, token, { client_id: ACME_NATIVE, client_secret: undefined }));
    const next = await refresh(service, token);
    expect(next.status).toBe(200);
    await ageRotation(service, token, 121);
    expectInvalidGrant(await refresh(service, token, { ...OTHER }));
    expect((await refresh(service, next.body.refresh_token)).status).toBe(200);
  });

  it('with a text that never was a refresh token is refused', async () => {
    const { access_token, refresh_token } = (await exchangeCode(service, await codeOf(browser))).body;
    const others = [access_token, await codeOf(browser), 'x', refresh_token.replace('dev:', ''), `${refresh_token} `];
    for (const other of others) expectInvalidGrant(await refresh(service, other));
    expect((await refresh(service, refresh_token)).status).toBe(200);
  });
});

describe('DELETE /v2/token', () => {
  it('revokes only the bearer token, not its refresh family or another access token of the family', async () => {
    const first = (await exchangeCode(service, await codeOf(browser))).body;
    const next = (await refresh(service, first.refresh_token)).body;
    const unrelated = (await exchangeCode(service, await codeOf(browser))).body;
    const response = await service.send('DELETE', ENDPOINT, bearer(next.access_token));
    expect(response).toMatchObject({ status: 200, body: {} });
    expect([await isValid(first.access_token), await isValid(next.access_token)]).toEqual([true, false]);
    expect((await service.send('DELETE', ENDPOINT, bearer(first.access_token))).status).toBe(200);
    const again = await refresh(service, next.refresh_token);
    expect(await isValid(again.body.access_token)).toBe(true);
    expect(await isValid(unrelated.access_token)).toBe(true);
    expect((await refresh(service, unrelated.refresh_token)).status).toBe(200);
  });

  it('revokes nothing for client credentials', async () => {
    const response = await service.send('DELETE', ENDPOINT, basic());
    expectError(response, {
      status: 401,
      error: 'invalid_token',
      description: 'Invalid access token',
      hint: undefined,
    });
  });
});

describe('POST /v2/token', () => {
  it.each(['password', 'client_credentials', 'cookie', 'agent_token', 'constructor', '__proto__', 'Refresh_token'])(
    'refuses the grant_type %s as unsupported',
    async (grant_type) => {
      const response = await askToken(service, { grant_type });
      expectError(response, { status: 400, error: 'unsupported_grant_type', hint: /^grant_type: / });
    },
  );

  it('responds with the reason if a body is neither a form nor JSON', async () => {
    const response = await service.post(ENDPOINT, 'grant_type=refresh_token', basic());
    const hint = 'body: not JSON';
    expectError(response, { status: 400, error: 'invalid_request', description: INVALID_MESSAGE, hint });
  });
});

it('the lifetimes of agent tokens can be configured', async () => {
  const environment = { AGENT_TOKEN_TTL: '61', AUTHORIZATION_CODE_TTL: '20', REFRESH_TOKEN_TTL: '30' };
  const other = await serviceOfTest({ environment });
  const visitor = new AgentBrowser(other);
  const [code, later] = [await codeOf(visitor), await codeOf(visitor)];
  const { body } = await exchangeCode(other, code);
  const { iat, exp } = claimsOf(body.access_token) as { iat: number; exp: number };
  expect([body.expires_in, exp - iat]).toEqual([61, 61]);
  other.clock.advance({ seconds: 21 });
  expectInvalidGrant(await exchangeCode(other, later));
  other.clock.advance({ seconds: 10 });
  expectInvalidGrant(await refresh(other, body.refresh_token));
});

function form(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString();
}

function basic(type?: string, client = AS_BACKEND): Record<string, string> {
  const [id, secret] = [client.client_id, client.client_secret].map((part) => form({ '': part }).slice(1));
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
  return { authorization, ...(type !== undefined && { 'content-type': type }) };
}

/** True if the bearer token is valid for an agent: the request then fails only because the customer is unknown. */
async function isValid(token: string): Promise<boolean> {
  const { status } = await service.post(TOKEN, agentTokenBody({ entity_id: UNKNOWN_CUSTOMER_ID }), bearer(token));
  expect([400, 401]).toContain(status);
  return status === 400;
}

async function newCustomer(token: string): Promise<string> {
  return (await service.post(TOKEN, agentTokenBody(), bearer(token))).body.entity_id;
}

async function firstRefreshToken(): Promise<string> {
  return (await exchangeCode(service, await codeOf(browser))).body.refresh_token;
}

function withScopes(clients: object[], clientId: string, scopes: string[]): object[] {
  return clients.map((client) => ((client as typeof OTHER).client_id === clientId ? { ...client, scopes } : client));
}

/** Applies a changed registry while `act` runs. */
async function withRegistry(changed: RegistryDocument, act: () => Promise<void>): Promise<void> {
  const apply = (document: RegistryDocument) =>
    service.application
      .get(RegistryFile)
      .apply(writeRegistry(join(service.database.folder, 'changed.yaml'), document), { force: true });
  await apply(changed);
  try {
    await act();
  } finally {
    await apply(registry);
    service.clock.advance({ seconds: 1 });
    browser = new AgentBrowser(service);
  }
}

function afterSeconds<Result>(seconds: number, act: () => Promise<Result>): Promise<Result> {
  service.clock.advance({ seconds });
  return act();
}

function familyOf(token: string): Promise<RefreshFamily | null> {
  const [id = ''] = (claimsOf(token).jti as string).split('.', 1);
  return service.application.get(DataSource).getRepository(RefreshFamily).findOneBy({ id });
}
