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

/** A request that is accepted, its caller, and the status of its response. */
type Request = [string, 'url' | 'managementUrl', keyof typeof credentials, object?, status?: number];

const BY_BEARER: Request = ['GET /admin/clients', 'managementUrl', 'operator'];
const BY_BASIC: Request = ['GET /oauth2/events', 'managementUrl', 'resourceServer'];

/** Each way to authenticate by the header. */
const REQUESTS: Request[] = [
  BY_BEARER,
  BY_BASIC,
  ['POST /oauth2/introspect', 'managementUrl', 'operator', TOKEN_PARAMETER],
  ['POST /oauth2/introspect', 'managementUrl', 'resourceServer', TOKEN_PARAMETER],
  ['POST /oauth2/revoke', 'managementUrl', 'operator', TOKEN_PARAMETER],
  ['POST /oauth2/revoke', 'managementUrl', 'client', TOKEN_PARAMETER],
  ['GET /oauth2/revocations', 'managementUrl', 'operator'],
  ['GET /oauth2/revocations', 'managementUrl', 'resourceServer'],
  ['GET /oauth2/events', 'managementUrl', 'operator'],
  ['POST /v2/token', 'url', 'client', REFRESH, 400],
  ['POST /v2/customer/revoke', 'url', 'client', REVOKE],
  ['POST /v2/customer/token', 'url', 'agent', agentTokenBody()],
  ['GET /v2/customer/info', 'url', 'customer'],
];

function send([start, port, , body]: Request, headers: string[]): Promise<TestResponse> {
  return exchange(service[port], rawRequest(start, body === undefined ? '' : JSON.stringify(body), headers));
}

const header = (value: string) => `Authorization: ${value}`;

async function expectRefused(request: Request, headers: string[]): Promise<void> {
  expect(await send(request, headers)).toMatchObject({
    status: 401,
    body: { error: expect.stringMatching(/^invalid_(token|client)$/) },
  });
}

describe('protocol §2.6 and §2.7: the header Authorization', () => {
  it.each(REQUESTS)('is accepted at %s, on %s, of %s once, and is refused twice', async (...request) => {
    const [, , caller, , status = 200] = request;
    const own = credentials[caller];
    for (const accepted of [own, own.replace(' ', '   '), own.replace(/^\w+/, (scheme) => scheme.toUpperCase())])
      expect((await send(request, [header(accepted)])).status).toBe(status);
    await expectRefused(request, [header(own), header('Basic eDp5')]);
    await expectRefused(request, [header(`${own},Bearer x`)]);
  });

  /** Each route reads the header by one function, so one request for each scheme is enough. */
  describe.each([BY_BEARER, BY_BASIC])('at %s, on %s, of %s', (...request) => {
    const own = () => credentials[request[2]];

    it.each([
      ['an earlier header', () => [header('Bearer x'), header(own())]],
      ['the same header again', () => [header(own()), `authorization: ${own()}`]],
      ['an empty header', () => [header(own()), 'AUTHORIZATION:']],
      ['headers apart', () => [header(own()), 'X-Other: x', 'Accept: */*', header(own())]],
      ['two credentials, joined by a comma', () => [header(`${own()}, Basic eDp5`)]],
      ['two credentials of which the second are valid', () => [header(`Bearer x, ${own()}`)]],
      ['a folded comma', () => [header(`${own()} ,`)]],
      ['a scheme that is unknown', () => [header(own().replace(/^\w+/, 'Token'))]],
      ['no scheme', () => [header(own().replace(/^\w+ /, ''))]],
      ['no space', () => [header(own().replace(' ', '\t'))]],
    ])('is refused with %s', (_what, headers: () => string[]) => expectRefused(request, headers()));
  });
});
