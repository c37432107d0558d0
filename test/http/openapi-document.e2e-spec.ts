import { afterAll, describe, expect, it } from 'vitest';
import { demoEntries } from '../../packages/try-it/src/demo-registry.js';
import { TryItModule } from '../../packages/try-it/src/try-it.module.js';
import { EXAMPLE } from '../../src/platform/http/api-examples.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { type ExampleRequest, exampleRequestsOf, withValues } from '../support/example-requests.js';
import { manage } from '../support/management-api.js';
import { type OpenApi } from '../support/openapi-texts.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { request, startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { TRANSFER } from '../support/transfers.js';
import { ADMIN_TOKEN, ADMIN_TOKENS } from '../support/use-service.js';

/**
 * Requests that cannot succeed without more state than the demo registry has. Other tests send them with this state.
 */
const LEFT_OUT: { requests: RegExp; status: number; reason: string }[] = [
  { requests: /^POST \/v2\/(customer\/)?token .*(authorization_code|refresh_token)/, status: 400, reason: 'a sign-in' },
  { requests: /^POST .* urn:ietf:params:oauth:grant-type:jwt-bearer/, status: 400, reason: 'a trusted sign-in system' },
  { requests: /^POST \/(consent|sign-in|sign-out)$/, status: 400, reason: 'the form of a page, with its cookie' },
  { requests: /^POST \/try\//, status: 400, reason: 'the Host of a loopback' },
  { requests: /^POST \/v2\/customer\/(export|erase|revoke)$/, status: 400, reason: 'one of several parameters' },
  { requests: /^POST \/admin\/resource-servers$/, status: 400, reason: 'a secret or keys' },
  { requests: /^POST \/admin\/[a-z-]+$/, status: 409, reason: 'entries that do not exist yet' },
  { requests: /^DELETE \/admin\/organizations\/[^/]+$/, status: 409, reason: 'a suspended organization' },
  { requests: /^DELETE .*\/(browsers|refresh-tokens)\//, status: 404, reason: 'a linked browser or app' },
];

const AUTH_URL = 'https://auth.example';

/** The demo registry with the secrets of the examples. */
function exampleRegistry() {
  const demo = demoEntries(AUTH_URL);
  const clients = demo.clients.map((each) =>
    'client_secret' in each ? { ...each, client_secret: EXAMPLE.clientSecret } : each,
  );
  const resource_servers = demo.resource_servers.map((each) => ({ ...each, secret: EXAMPLE.clientSecret }));
  return { ...demo, clients, resource_servers };
}

const start = () =>
  startTestService({
    registry: exampleRegistry(),
    modules: [TryItModule],
    environment: { AUTH_URL, ADMIN_TOKENS, TRY_IT: 'true' },
  });

/** Requests that change entries, which other requests need. Each has a service of its own. */
const CHANGES = /^(PUT|PATCH|DELETE) \/admin\/(?!customers)|^POST \/admin\/clients\/.*\/secret/;

const service: TestService = await start();
afterAll(() => service.stop());
const document = (await request(`${service.managementUrl}/openapi.json`, {})).body as OpenApi & {
  info: { description: string };
};
const requests = exampleRequestsOf(document);
const named = requests.map((each): [string, ExampleRequest] => [each.name, each]);

const asAgent = { email: EXAMPLE.agentEmail, clientId: EXAMPLE.clientId };
const CHAT_API = basic(EXAMPLE.resourceServerId, EXAMPLE.clientSecret);

/**
 * The responses to a request with each credential that the document allows, with an agent token and a customer of its
 * own.
 */
async function responsesTo(service: TestService, example: ExampleRequest): Promise<TestResponse[]> {
  const agentToken = await issueAgentToken(service, asAgent);
  const backend = { email: 'backend@acme.example', clientId: EXAMPLE.serverClientId };
  const backendToken = await issueAgentToken(service, { ...backend, scope: 'customers:manage' });
  const page = { origin: EXAMPLE.origin };
  const user = { external_id: EXAMPLE.externalId };
  const grant = { grant_type: 'agent_token', response_type: 'token', client_id: EXAMPLE.clientId, ...user };
  const customer = (await service.post(TOKEN, grant, bearer(agentToken))).body;
  const challenge = example.body?.includes('code_verifier') && { code_challenge: EXAMPLE.codeChallenge };
  const transfer = { bearer_type: 'customer', client_id: EXAMPLE.clientId, ...challenge };
  const { identity_transfer_token } = (await service.post(TRANSFER, transfer, bearer(customer.access_token))).body;
  const { agents } = (await manage(service, 'GET', '/admin/agents', bearer(ADMIN_TOKEN))).body;
  const { id: agentId } = agents.find(({ email }: { email: string }) => email === EXAMPLE.agentEmail);
  const values = { accessToken: customer.access_token, entityId: customer.entity_id, agentId };
  const { isManagement, method, path, headers, body, schemes } = withValues(example, {
    ...values,
    transferToken: identity_transfer_token,
  });
  const credentials: Record<string, object[]> = {
    '': [page],
    bearer: [{ ...page, ...bearer(customer.access_token) }, { ...page, ...bearer(agentToken) }, bearer(backendToken)],
    client: [basic(EXAMPLE.serverClientId, EXAMPLE.clientSecret)],
    resource_server: [CHAT_API],
    operator: [bearer(ADMIN_TOKEN)],
  };
  const url = (isManagement ? service.managementUrl : service.url) + path;
  const responses: TestResponse[] = [];
  for (const credential of schemes.flatMap((scheme) => credentials[scheme] ?? [])) {
    const init = { method, headers: { ...headers, ...credential } };
    responses.push(await request(url, { ...init, ...(body !== undefined && { body }) }));
  }
  return responses;
}

describe('the example requests of the OpenAPI document', () => {
  it('are at least one for each operation', () => {
    const operations = Object.values(document.paths).flatMap(({ servers, ...methods }) => Object.keys(methods));
    expect(requests.length).toBeGreaterThanOrEqual(operations.length);
    expect(new Set(requests.map(({ name }) => name)).size).toBe(requests.length);
  });

  // `request` compares the status and the schema of each response with the document
  it.each(named)('%s: succeeds with a credential of the document, unless it is left out', async (_, each) => {
    const own = CHANGES.test(each.name) ? await start() : service;
    const statuses = (await responsesTo(own, each)).map(({ status }) => status);
    if (own !== service) await own.stop();
    const leftOut = LEFT_OUT.find((left) => left.requests.test(each.name));
    if (leftOut) expect(statuses).toContain(leftOut.status);
    else expect(Math.min(...statuses), `${statuses}`).toBeLessThan(400);
  });

  it('are left out only if they exist', () => {
    for (const left of LEFT_OUT)
      expect(
        requests.some(({ name }) => left.requests.test(name)),
        left.reason,
      ).toBe(true);
  });
});

it('the OpenAPI document says of which entries of the registry a deletion ends tokens', () => {
  const deletionOf = (list: string) => document.paths[`/admin/${list}/{key}`]?.delete?.description?.split('\n\n', 1)[0];
  expect(['agents', 'clients', 'organizations', 'resource-servers'].map(deletionOf)).toEqual([
    'Deletes the agent and ends its tokens.',
    'Deletes the client and ends its tokens.',
    'Erases a suspended organization with its clients, agents and customers, after a delay. Until then it can be cancelled. A repeated request changes nothing.',
    'Deletes the resource server.',
  ]);
});

it('the OpenAPI document says that a slash at the end of a path changes nothing, as the service does for each of its paths', async () => {
  expect(document.info.description).toContain('A slash at the end of a path does not change the path');
  for (const [path, { servers, ...methods }] of Object.entries(document.paths)) {
    const port = servers[0]?.url === '/' ? service.managementUrl : service.url;
    const concrete = path.replace(/\/$/, '').replace(/\{\w+\}/g, 'x');
    for (const method of Object.keys(methods)) {
      const [one, other] = await Promise.all(
        [concrete || '/', `${concrete}/`].map((each) => request(port + each, { method: method.toUpperCase() })),
      );
      expect([other?.status, other?.body?.error_hint], path).toEqual([one?.status, one?.body?.error_hint]);
      expect(one?.status, path).not.toBe(405);
      // the try-it page is there with the demo registry only
      if (!path.includes('{') && !path.startsWith('/try')) expect(one?.status, path).not.toBe(404);
    }
  }
});
