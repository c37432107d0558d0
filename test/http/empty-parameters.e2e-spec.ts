import { beforeAll, describe, expect, it } from 'vitest';
import { AS_BACKEND, askToken, exchangeCode, pkce, refresh } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf, FOR_NATIVE, FORM, NATIVE_CALLBACK } from '../support/authorization-page.js';
import { expectInvalidClient, expectInvalidRequest } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { ACME_BACKEND, ACME_NATIVE, ACME_SITE, BACKEND_SECRET, testRegistry } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { agentTokenPair } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const SERVER_SECRET = 'a secret of a resource server with enough characters';
const CHAT_API = basic('customer-chat-api', SERVER_SECRET);
const BACKEND = basic(ACME_BACKEND, BACKEND_SECRET);
const AGENT_TOKENS = '/v2/token';
const AS_FORM = { 'content-type': FORM };

const registry = testRegistry();
registry.resource_servers.push({ id: 'customer-chat-api', secret: SERVER_SECRET, audiences: ['customer-api'] });

const service = useService({ registry });
let agent: Record<string, string>;
beforeAll(async () => {
  agent = bearer((await agentTokenPair(service)).access_token);
});

/** Sends a body in which one parameter has another value. `undefined` leaves the parameter out. */
type Send = (changed: Record<string, unknown>) => Promise<TestResponse>;

const olderRoute: Send = (changed) =>
  service.post('/customer', { client_id: ACME_SITE, response_type: 'token', ...changed }, agent);
const transfer: Send = (changed) =>
  service.post('/v2/customer/identity_transfer', { bearer_type: 'agent', client_id: ACME_SITE, ...changed }, agent);
const agentCode: Send = (changed) =>
  service.post(AGENT_TOKENS, {
    ...AS_BACKEND,
    grant_type: 'authorization_code',
    code: 'x',
    redirect_uri: 'x',
    ...changed,
  });
const agentRefresh: Send = (changed) =>
  service.post(AGENT_TOKENS, { ...AS_BACKEND, grant_type: 'refresh_token', refresh_token: 'x', ...changed });
const introspect: Send = (changed) =>
  manage(service, 'POST', '/oauth2/introspect', CHAT_API, { token: 'x', ...changed });
const revoke: Send = (changed) => manage(service, 'POST', '/oauth2/revoke', BACKEND, { token: 'x', ...changed });
const newSecret: Send = (changed) => service.admin('POST', `/admin/clients/${ACME_BACKEND}/secret`, changed);

/** The conformance kit sends the same to each grant. */
describe('a JSON body', () => {
  const required: [string, Send, string[]][] = [
    ['its older route', olderRoute, ['client_id', 'response_type']],
    ['the transfer', transfer, ['bearer_type', 'client_id']],
    ['the code exchange of agents', agentCode, ['grant_type', 'code', 'redirect_uri']],
    ['the refresh of agents', agentRefresh, ['grant_type', 'refresh_token']],
    ['introspection', introspect, ['token']],
    ['revocation', revoke, ['token']],
  ];
  const optional: [string, Send, string[]][] = [
    ['its older route', olderRoute, ['entity_id', 'organization_id', 'redirect_uri']],
    ['the transfer', transfer, ['customer_id', 'code_challenge', 'code_challenge_method']],
    ['the code exchange of agents', agentCode, ['code_verifier', 'client_id', 'client_secret']],
    ['the refresh of agents', agentRefresh, ['scope', 'client_id', 'client_secret']],
  ];
  const each = (rows: typeof required) =>
    rows.flatMap(([route, send, names]) => names.map((name) => [name, route, send] as const));

  it.each(each(required))('with a missing or empty required %s is refused by %s', async (name, _, send) => {
    for (const value of [undefined, '']) expectInvalidRequest(await send({ [name]: value }), `${name}: required`);
  });

  it.each(each(optional))('with an empty optional %s is refused by %s', async (name, _, send) => {
    expectInvalidRequest(await send({ [name]: '' }), `${name}: must not be empty`);
  });

  it.each(each([...required, ...optional]))(
    'with a %s that is not a string is refused by %s',
    async (name, _, send) => {
      for (const value of [7, null, ['text']])
        expectInvalidRequest(await send({ [name]: value }), `${name}: must be a string`);
    },
  );

  it('with a string or nothing instead of a number is refused by the route of a new client secret', async () => {
    expectInvalidRequest(await newSecret({ old_valid_for: '' }), 'old_valid_for: must not be empty');
    expectInvalidRequest(await newSecret({ old_valid_for: '7' }), 'old_valid_for: must be an integer');
  });
});

describe('an empty parameter of a form counts as left out', () => {
  it('at /v2/token, for code_verifier, client_secret and scope', async () => {
    const browser = new AgentBrowser(service);
    const code = await codeOf(browser);
    const pair = await exchangeCode(service, code, { code_verifier: '' });
    expect(pair.status).toBe(200);
    const refreshed = await refresh(service, pair.body.refresh_token, { ...AS_BACKEND, scope: '' });
    expect(refreshed).toMatchObject({ status: 200, body: { scope: pair.body.scope } });
    const { verifier, asked } = pkce();
    const native = await exchangeCode(service, await codeOf(browser, { ...FOR_NATIVE, ...asked }), {
      ...{ client_id: ACME_NATIVE, client_secret: '', redirect_uri: NATIVE_CALLBACK, code_verifier: verifier },
    });
    expect(native.status).toBe(200);
  });

  it('at /v2/token, for the verifier of a challenge and for the secret of a client that has one', async () => {
    const browser = new AgentBrowser(service);
    const { verifier, asked } = pkce();
    const code = await codeOf(browser, { ...FOR_NATIVE, ...asked });
    const asNative = { client_id: ACME_NATIVE, client_secret: undefined, redirect_uri: NATIVE_CALLBACK };
    expect((await exchangeCode(service, code, { ...asNative, code_verifier: '' })).body.error).toBe('invalid_grant');
    expect((await exchangeCode(service, code, { ...asNative, code_verifier: verifier })).status).toBe(200);
    const request = { grant_type: 'refresh_token', refresh_token: 'x', client_secret: '' };
    expectInvalidClient(await askToken(service, request));
  });

  it.each([
    ['/oauth2/introspect', CHAT_API],
    ['/oauth2/revoke', BACKEND],
  ])('at %s, for the token', async (path, caller) => {
    for (const body of ['token', 'token_type_hint=access_token&token='])
      expectInvalidRequest(await manage(service, 'POST', path, { ...caller, ...AS_FORM }, body), 'token: required');
  });

  it('but is refused if it is given twice', async () => {
    const response = await service.post(AGENT_TOKENS, 'grant_type=refresh_token&grant_type=', AS_FORM);
    expectInvalidRequest(response, 'body: a parameter is given more than once');
  });
});
