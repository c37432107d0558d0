import { beforeEach, describe, expect, it } from 'vitest';
import { type RegistryDocument } from '../../packages/conformance-kit/src/registry-file.js';
import {
  AS_BACKEND,
  agentTokenBody,
  askToken,
  claimsOf,
  exchangeCode,
  pkce,
  refresh,
} from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { AgentBrowser, BACKEND_CALLBACK, codeOf, FORM } from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidClient, expectInvalidGrant, expectInvalidRequest } from '../support/expect-error.js';
import { applyRegistry } from '../support/registry-files.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_SITE,
  BACKEND_SECRET,
  RIVAL,
  testRegistry,
  UNKNOWN_CUSTOMER,
} from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { ageRedemption } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const OF_SITE = { client_id: ACME_SITE, client_secret: undefined };
const ENDPOINT = '/v2/token';
/** Another application of the same organization. Its secret must be encoded in Basic credentials. */
const OTHER = { client_id: 'acme-other~1', client_secret: 'a+b%c:d e/ü" and more characters of it' };
/** An application with one more scope. */
const SCOPED = { client_id: 'acme-scoped', client_secret: BACKEND_SECRET };
const BACKEND = basic(ACME_BACKEND, BACKEND_SECRET);
const OTHER_CALLBACK = 'https://other.acme.example/callback';

type Pair = Record<'access_token' | 'refresh_token' | 'scope', string>;

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

const service = useService({ registry });
let browser: AgentBrowser;
beforeEach(() => {
  browser = new AgentBrowser(service);
});

const pair = async (): Promise<Pair> => (await exchangeCode(service, await codeOf(browser))).body;
const scopedCode = () => codeOf(browser, { client_id: SCOPED.client_id, redirect_uri: OTHER_CALLBACK });
const exchangeScoped = (code: string) => exchangeCode(service, code, { ...SCOPED, redirect_uri: OTHER_CALLBACK });
const postForm = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  service.post(ENDPOINT, new URLSearchParams(fields).toString(), { 'content-type': FORM, ...headers });

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
    expect(response.cookies).toEqual([]);
    expect(await isValid(response.body.access_token)).toBe(true);
  });

  it('accepts client_secret_basic and JSON, and a form whose type names a charset', async () => {
    const fields = { grant_type: 'authorization_code', redirect_uri: BACKEND_CALLBACK };
    const body = JSON.stringify({ ...fields, code: await codeOf(browser) });
    expect((await service.post(ENDPOINT, body, { ...BACKEND, 'content-type': 'text/plain' })).status).toBe(200);
    const form = { ...fields, ...AS_BACKEND, code: await codeOf(browser) };
    expect((await postForm(form, { 'content-type': `${FORM}; charset=UTF-8` })).status).toBe(200);
  });
});

describe('a client that is not authenticated', () => {
  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['no client at all', {}, {}],
    ['a wrong secret', { client_id: ACME_BACKEND, client_secret: 'wrong' }, {}],
    ['an unknown client', { client_id: 'nobody', client_secret: BACKEND_SECRET }, {}],
    ['a wrong secret by Basic', {}, basic(ACME_BACKEND, 'wrong')],
    ['a bearer', { ...AS_BACKEND }, { authorization: 'Bearer x' }],
  ])('is refused for every grant: %s', async (_, fields, headers) => {
    const code = await codeOf(browser);
    for (const grant of [{ grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK }, {}]) {
      expectInvalidClient(await postForm({ ...grant, ...fields }, headers));
    }
    expect((await exchangeCode(service, code)).status).toBe(200);
  });

  it('is refused with a hint if it authenticates in two ways or as two clients', async () => {
    expectInvalidRequest(await postForm({ client_secret: BACKEND_SECRET }, BACKEND), /^client_secret: given twice/);
    expectInvalidRequest(await postForm({ client_id: ACME_NATIVE }, BACKEND), /^client_id: /);
  });

  it('is refused if it is a web application, which gets its tokens at the authorization page', async () => {
    const response = await askToken(service, { ...OF_SITE, grant_type: 'refresh_token' });
    expectError(response, { status: 400, error: 'unauthorized_client', hint: /^client_id: / });
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
});

describe('an authorization code', () => {
  it('expires after five minutes', async () => {
    const [early, later] = [await codeOf(browser), await codeOf(browser)];
    service.clock.advance({ seconds: 298 });
    expect((await exchangeCode(service, early)).status).toBe(200);
    service.clock.advance({ seconds: 3 });
    expectInvalidGrant(await exchangeCode(service, later));
  });

  it('stays usable if the agent can grant nothing at the time of the exchange', async () => {
    const code = await scopedCode();
    await withScopes(['none'], async () => expectInvalidGrant(await exchangeScoped(code)));
    expect((await exchangeScoped(code)).status).toBe(200);
  });

  it('is refused when it is replayed, and the replay revokes the tokens of the first exchange', async () => {
    const { verifier, asked } = pkce();
    const code = await codeOf(browser, asked);
    const exchange = (more = {}) => exchangeCode(service, code, { code_verifier: verifier, ...more });
    const first = await exchange();
    const refreshed = await refresh(service, first.body.refresh_token);
    const unrelated = await pair();
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
    const first = (await exchangeScoped(await scopedCode())).body;
    expect(first.scope).toBe('customers:own agents:read');
    const less = (await refresh(service, first.refresh_token, { ...SCOPED, scope: 'agents:read' })).body;
    expect(less.scope).toBe('agents:read');
    expect(claimsOf(less.access_token).scope).toBe('agents:read');
    for (const scope of ['agents:read reports:read', 'nothing', ' '])
      expectInvalidRequest(await refresh(service, less.refresh_token, { ...SCOPED, scope }), /^scope: /);
    // An error response does not shorten the replay window of the next attempt.
    service.clock.advance({ seconds: 11 });
    const all = await refresh(service, less.refresh_token, SCOPED);
    expect(all.body.scope).toBe('customers:own agents:read');
  });

  it.each(['agents:read agents:read', 'agents:read  customers:own', ' agents:read '])(
    'reads the scope as a set of values that are delimited by spaces (RFC 6749 §3.3): "%s"',
    async (scope) => {
      const first = (await exchangeScoped(await scopedCode())).body;
      const { status, body } = await refresh(service, first.refresh_token, { ...SCOPED, scope });
      expect({ status, scope: body.scope }).toEqual({
        status: 200,
        scope: scope.includes('own') ? scope.replace('  ', ' ') : 'agents:read',
      });
      expect(claimsOf(body.access_token).scope).toBe(body.scope);
    },
  );

  it('grants only the scopes that the application is registered for at the time of the refresh', async () => {
    const first = (await exchangeScoped(await scopedCode())).body;
    await withScopes(['agents:read'], async () => {
      const next = await refresh(service, first.refresh_token, SCOPED);
      expect(next.body.scope).toBe('agents:read');
    });
  });

  it.each([
    ['scopes', { scopes: ['agents:read'] }],
    ['organization', { organization_id: RIVAL }],
  ])('is refused after a change of the agent’s %s, which revokes the access tokens too', async (_, change) => {
    const first = await pair();
    const [agent, ...others] = registry.agents;
    await withRegistry({ ...registry, agents: [{ ...agent, ...change }, ...others] }, async () => {
      expectInvalidGrant(await refresh(service, first.refresh_token));
      expect(await isValid(first.access_token)).toBe(false);
    });
  });
});

it('DELETE /v2/token ends all access tokens of the session so far, and not its refresh token', async () => {
  const first = await pair();
  const next = (await refresh(service, first.refresh_token)).body;
  const unrelated = await pair();
  const response = await service.send('DELETE', ENDPOINT, bearer(next.access_token));
  expect(response).toMatchObject({ status: 200, body: {} });
  expect([await isValid(first.access_token), await isValid(next.access_token)]).toEqual([false, false]);
  const again = (await refresh(service, next.refresh_token)).body;
  expect(await isValid(again.access_token)).toBe(true);
  expect(claimsOf(again.access_token)).toMatchObject({ sid: claimsOf(next.access_token).sid, ep: 1 });
  expect(await isValid(unrelated.access_token)).toBe(true);
  expect((await refresh(service, unrelated.refresh_token)).status).toBe(200);
});

it.each(['password', 'cookie', '__proto__'])(
  'POST /v2/token refuses the grant_type %s as unsupported',
  async (grant_type) => {
    const response = await askToken(service, { grant_type });
    expectError(response, { status: 400, error: 'unsupported_grant_type', hint: /^grant_type: / });
  },
);

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

/** True if the bearer token is valid for an agent: the request then fails only because the customer is unknown. */
async function isValid(token: string): Promise<boolean> {
  const { status } = await service.post(TOKEN, agentTokenBody({ entity_id: UNKNOWN_CUSTOMER }), bearer(token));
  expect([400, 401]).toContain(status);
  return status === 400;
}

/** Gives the client SCOPED other scopes while `act` runs. */
function withScopes(scopes: string[], act: () => Promise<void>): Promise<void> {
  const isScoped = (client: object) => (client as typeof OTHER).client_id === SCOPED.client_id;
  const clients = registry.clients.map((client) => (isScoped(client) ? { ...client, scopes } : client));
  return withRegistry({ ...registry, clients }, act);
}

/** Applies a changed registry while `act` runs. */
async function withRegistry(changed: RegistryDocument, act: () => Promise<void>): Promise<void> {
  await applyRegistry(service, changed);
  try {
    await act();
  } finally {
    await applyRegistry(service, registry);
    service.clock.advance({ seconds: 1 });
  }
}
