import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { loadExample } from '../support/load-example.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { PROJECT, read } from '../support/project-files.js';
import { ACME, testRegistry } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const SECRET = 'secret-of-the-resource-server-of-the-guide';

const resource_servers = [{ id: 'chat-api', secret: SECRET, audiences: ['customer-api'] }];

const service = useService({ registry: { ...testRegistry(), resource_servers } });
let agentToken: string;
const servers: Server[] = [];
beforeAll(async () => {
  agentToken = await issueAgentToken(service);
  Object.assign(process.env, {
    AUTH_URL: 'https://auth.example',
    JWKS_URL: `${service.url}/.well-known/jwks.json`,
    REVOCATIONS_URL: `${service.managementUrl}/oauth2/revocations`,
    INTROSPECTION_URL: `${service.managementUrl}/oauth2/introspect`,
    RESOURCE_SERVER_SECRET: SECRET,
    PORT: '0',
  });
});
afterAll(() => {
  for (const server of servers) server.close();
});

async function urlOf(server: Server): Promise<string> {
  servers.push(server);
  if (!server.listening) await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A token that an agent obtained for a customer, and the ids of both. */
async function tokenByAgent(): Promise<{ token: string; customer: string; agent: string }> {
  const { body } = await service.post(TOKEN, agentTokenBody(), bearer(agentToken));
  return { token: body.access_token, customer: body.entity_id, agent: String(claimsOf(agentToken).sub) };
}

/** Tokens that a customer API must reject, each made from a valid customer token. */
async function wrongTokens(): Promise<string[]> {
  const { access_token: token } = await newCustomer(service);
  const [head = '', claims = '', signature = ''] = token.split('.');
  const [, , otherSignature = ''] = (await newCustomer(service)).access_token.split('.');
  return [
    agentToken,
    `${head}.${claims}.${otherSignature}`,
    `${head}.${claims}.`,
    `${token}x${signature}`,
    'dev:x',
    'x',
  ];
}

describe('resource-server/jose.js', () => {
  it('returns the claims of a customer token, and rejects agent tokens and damaged tokens', async () => {
    const { verify } = await loadExample('resource-server/jose.js');
    const { access_token, entity_id } = await newCustomer(service);
    expect(await verify(access_token)).toMatchObject({ sub: entity_id, aud: 'customer-api' });
    const wrong = [...(await wrongTokens()), access_token.slice(0, -8)];
    for (const each of wrong) await expect(async () => verify(each)).rejects.toThrow();
  });
});

describe('resource-server/token-verifier.js', () => {
  afterAll(() => void process.removeAllListeners('SIGTERM')); // the example listens to it

  it('accepts a token until it is ended, lets pages read its responses, and responds with 503 if it cannot decide', async () => {
    const { server, verifier } = await loadExample('resource-server/token-verifier.js');
    const url = await urlOf(server);
    const { access_token, entity_id } = await newCustomer(service);
    const chatsOf = (organization: string) => `${url}/organizations/${organization}/chats`;
    const chats = (token: string) => request(chatsOf(ACME), { headers: bearer(token) });
    expect((await chats(access_token)).body).toEqual({ customer: entity_id, organization: ACME });
    const audit = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const byAgent = await tokenByAgent();
    for (const each of [access_token, byAgent.token]) expect((await chats(each)).status).toBe(200);
    const lines = audit.mock.calls.map(([line]) => line);
    audit.mockRestore();
    expect(lines).toEqual([
      `audit: customer ${entity_id} read chats (cookie)\n`,
      `audit: agent ${byAgent.agent} for customer ${byAgent.customer} read chats (agent_token)\n`,
    ]);
    for (const wrong of await wrongTokens()) expect((await chats(wrong)).status).toBe(401);
    expect((await request(chatsOf('another'), { headers: bearer(access_token) })).status).toBe(404);
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    const statusOf = async () => (await chats(access_token)).status;
    await vi.waitFor(async () => expect(await statusOf()).toBe(401), 30_000);
    expect((await request(`${url}/health`, {})).body).toMatchObject({ revocations: 'current', entries: 1 });
    const withoutToken = await request(chatsOf(ACME), {});
    expect([withoutToken.status, withoutToken.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(withoutToken.body).toEqual({});
    const headers = { origin: 'http://localhost:8080' };
    const [unreadable, readable, preflight] = [
      withoutToken,
      await request(chatsOf(ACME), { headers }),
      await request(chatsOf(ACME), { headers, method: 'OPTIONS' }),
    ];
    const origins = [unreadable, readable, preflight].map((each) => each.headers.get('access-control-allow-origin'));
    expect(origins).toEqual([null, headers.origin, headers.origin]);
    expect([readable.status, preflight.status]).toEqual([401, 204]);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization');
    verifier.close();
    const undecided = await chats((await newCustomer(service)).access_token);
    expect([undecided.status, undecided.headers.get('retry-after')]).toEqual([503, '5']);
  });
});

describe('resource-server/introspection.js and resource-server/auth-service.js', () => {
  it('know at once that a token has ended, which jose.js does not notice', async () => {
    const { server } = await loadExample('resource-server/auth-service.js');
    const url = await urlOf(server);
    const { access_token, entity_id } = await newCustomer(service);
    const accepted = await request(url, { headers: bearer(access_token) });
    const organization = accepted.headers.get('x-organization-id');
    expect([accepted.status, accepted.headers.get('x-customer-id'), organization]).toEqual([204, entity_id, ACME]);
    const { token, customer, agent } = await tokenByAgent();
    const byAgent = await request(url, { headers: bearer(token) });
    const ids = [accepted, byAgent].map(({ headers }) => [headers.get('x-customer-id'), headers.get('x-speaker-id')]);
    expect(ids).toEqual([
      [entity_id, entity_id],
      [customer, agent],
    ]);
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    expect((await request(url, { headers: bearer(access_token) })).status).toBe(401);
    expect(await (await loadExample('resource-server/jose.js')).verify(access_token)).toMatchObject({ sub: entity_id });
    for (const wrong of [agentToken, 'x']) expect((await request(url, { headers: bearer(wrong) })).status).toBe(401);
    expect((await request(url, {})).status).toBe(401);
  });
});

describe('resource-server/jose.js, if the keys cannot be fetched', () => {
  it('accepts tokens of known keys, and otherwise responds with 503 to a valid token', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'Date'], now: Date.now() });
    const { access_token, entity_id } = await newCustomer(service);
    const fetchOfTest = globalThis.fetch;
    let isAvailable = false;
    let requests = 0;
    globalThis.fetch = (...parameters: Parameters<typeof fetch>) => {
      requests += 1;
      return isAvailable ? fetchOfTest(...parameters) : Promise.reject(new TypeError('fetch failed'));
    };
    try {
      const { verify, statusOf } = await import(`${PROJECT}/examples/integrating/resource-server/jose.js?without-keys`); // has no keys yet
      const statusFor = async (token: string) => {
        try {
          return (await verify(token)).sub;
        } catch (error) {
          return statusOf(error);
        }
      };
      expect(await statusFor(access_token)).toBe(503);
      isAvailable = true;
      expect(await statusFor(access_token)).toBe(entity_id);
      const damaged = `${access_token.slice(0, -8)}AAAAAAAA`;
      for (const wrong of [agentToken, damaged, 'dev:x', 'x']) expect(await statusFor(wrong)).toBe(401);
      isAvailable = false;
      const before = requests;
      await vi.advanceTimersByTimeAsync(600_000);
      expect(requests).toBeGreaterThan(before);
      expect(await statusFor(access_token)).toBe(entity_id);
    } finally {
      globalThis.fetch = fetchOfTest;
      vi.useRealTimers();
    }
  });
});

const example = (name: string) => read(`examples/integrating/resource-server/${name}`);

describe('the configurations of proxies and Spring', () => {
  it('resource-server/envoy.yaml and resource-server/apache.conf replace the headers of a caller', () => {
    const { claim_to_headers } = parse(example('envoy.yaml')).typed_config.providers.customers;
    const headers = { 'X-Customer-Id': 'sub', 'X-Organization-Id': 'organization_id' };
    for (const [header_name, claim_name] of Object.entries(headers)) {
      expect(claim_to_headers).toContainEqual({ header_name, claim_name });
      expect(example('apache.conf')).toContain(`RequestHeader set ${header_name} "%{OIDC_CLAIM_${claim_name}}e"`);
    }
  });

  it('resource-server/envoy.yaml and resource-server/apache.conf name the agent that speaks, and no agent that the caller names', () => {
    const { claim_to_headers } = parse(example('envoy.yaml')).typed_config.providers.customers;
    expect(claim_to_headers).toContainEqual({ header_name: 'X-Agent-Id', claim_name: 'act.sub' });
    const lines = ['RequestHeader unset X-Act', 'RequestHeader set X-Act "%{OIDC_CLAIM_act}e" env=OIDC_CLAIM_act'];
    expect(example('apache.conf')).toContain(lines.map((line) => `  ${line}\n`).join(''));
  });

  it('resource-server/envoy.yaml has the issuer, keys, audience and region prefix of npm start', async () => {
    const { customers } = parse(example('envoy.yaml')).typed_config.providers;
    const { http_uri } = customers.remote_jwks;
    expect((await request(http_uri.uri.replace(customers.issuer, service.url), {})).body.keys).toHaveLength(1);
    const header = `Bearer ${(await newCustomer(service)).access_token}`;
    expect(header.startsWith(customers.from_headers[0].value_prefix)).toBe(true);
    expect(customers.audiences).toEqual(['customer-api']);
  });

  it('resource-server/spring.yaml, resource-server/TokenResolver.java and resource-server/apache.conf suit introspection', () => {
    const { opaquetoken } = parse(example('spring.yaml')).spring.security.oauth2.resourceserver;
    const [, url] = /^OIDCOAuthIntrospectionEndpoint (\S+)$/m.exec(example('apache.conf')) ?? [];
    for (const each of [opaquetoken['introspection-uri'], url])
      expect(new URL(each).pathname).toBe('/oauth2/introspect');
    expect(example('TokenResolver.java')).toContain('BearerTokenResolver');
  });
});
