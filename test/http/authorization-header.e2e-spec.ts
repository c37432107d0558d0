import { beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { basic } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { ACME_BACKEND, BACKEND_SECRET, testRegistry } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const SERVER_SECRET = 'resource-server-secret-of-the-test';
const registry = testRegistry();
registry.resource_servers.push({ id: 'chat-api', secret: SERVER_SECRET, audiences: ['customer-api'], events: 'all' });
const service = useService({ registry });

/** Credentials as a caller sends them after `Authorization: `. */
const credentials = {
  operator: `Bearer ${ADMIN_TOKEN}`,
  client: basic(ACME_BACKEND, BACKEND_SECRET).authorization,
  resourceServer: basic('chat-api', SERVER_SECRET).authorization,
  agent: '',
  customer: '',
};
beforeAll(async () => {
  credentials.agent = `Bearer ${await issueAgentToken(service)}`;
  credentials.customer = `Bearer ${(await service.post(TOKEN, cookieBody())).body.access_token}`;
});

const TOKEN_PARAMETER = { token: 'dev:unknown' };
const REFRESH = { grant_type: 'refresh_token', refresh_token: 'dev:unknown' };
const REVOKE = { ...TOKEN_PARAMETER, client_id: ACME_BACKEND };

/** Each way to authenticate by the header, with a request that is accepted, and the status of its response. */
const REQUESTS: [string, 'url' | 'managementUrl', keyof typeof credentials, object?, status?: number][] = [
  ['GET /admin/clients', 'managementUrl', 'operator'],
  ['POST /oauth2/introspect', 'managementUrl', 'operator', TOKEN_PARAMETER],
  ['POST /oauth2/introspect', 'managementUrl', 'resourceServer', TOKEN_PARAMETER],
  ['POST /oauth2/revoke', 'managementUrl', 'operator', TOKEN_PARAMETER],
  ['POST /oauth2/revoke', 'managementUrl', 'client', TOKEN_PARAMETER],
  ['GET /oauth2/revocations', 'managementUrl', 'operator'],
  ['GET /oauth2/revocations', 'managementUrl', 'resourceServer'],
  ['GET /oauth2/events', 'managementUrl', 'operator'],
  ['GET /oauth2/events', 'managementUrl', 'resourceServer'],
  ['POST /v2/token', 'url', 'client', REFRESH, 400],
  ['POST /v2/customer/revoke', 'url', 'client', REVOKE],
  ['POST /v2/customer/token', 'url', 'agent', agentTokenBody()],
  ['GET /v2/customer/info', 'url', 'customer'],
];

describe.each(REQUESTS)('protocol §2.6 and §2.7: the header Authorization at %s, on %s, of %s', (...request) => {
  const [start, port, caller, body, status = 200] = request;
  const send = (headers: string[]): Promise<TestResponse> =>
    exchange(service[port], rawRequest(start, body === undefined ? '' : JSON.stringify(body), headers));
  const header = (value = credentials[caller]) => `Authorization: ${value}`;

  it('is accepted once, with any number of spaces after the scheme', async () => {
    expect((await send([header()])).status).toBe(status);
    expect((await send([header(credentials[caller].replace(' ', '   '))])).status).toBe(status);
    expect((await send([header(credentials[caller].replace(/^\w+/, (scheme) => scheme.toUpperCase()))])).status).toBe(
      status,
    );
  });

  it.each([
    ['a second header', () => [header(), header('Basic eDp5')]],
    ['an earlier header', () => [header('Bearer x'), header()]],
    ['the same header again', () => [header(), 'authorization: '.concat(credentials[caller])]],
    ['an empty header', () => [header(), 'AUTHORIZATION:']],
    ['headers apart', () => [header(), 'X-Other: x', 'Accept: */*', header()]],
    ['two credentials, joined by a comma', () => [header(`${credentials[caller]}, Basic eDp5`)]],
    ['two credentials, joined by a comma alone', () => [header(`${credentials[caller]},Bearer x`)]],
    ['two credentials of which the second are valid', () => [header(`Bearer x, ${credentials[caller]}`)]],
    ['a folded comma', () => [header(`${credentials[caller]} ,`)]],
    ['a scheme that is unknown', () => [header(credentials[caller].replace(/^\w+/, 'Token'))]],
    ['no scheme', () => [header(credentials[caller].replace(/^\w+ /, ''))]],
    ['no space', () => [header(credentials[caller].replace(' ', '\t'))]],
  ])('is refused with %s', async (_what, headers: () => string[]) => {
    expect(await send(headers())).toMatchObject({
      status: 401,
      body: { error: expect.stringMatching(/^invalid_(token|client)$/) },
    });
  });
});
