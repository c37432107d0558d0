import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { demoEntries } from '../../packages/try-it/src/demo-registry.js';
import { tryItModule } from '../../packages/try-it/src/try-it.module.js';
import { EXAMPLE } from '../../src/platform/http/api-examples.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { type ExampleRequest, exampleRequestsOf, withValues } from '../support/example-requests.js';
import { manage } from '../support/management-api.js';
import type { OpenApi } from '../support/openapi-texts.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { request, startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { TRANSFER } from '../support/transfers.js';

/** Requests that cannot succeed without more state than the demo registry has. Other tests send them with this state. */
const LEFT_OUT: { requests: RegExp; status: number; reason: string }[] = [
  { requests: /^POST \/v2\/(customer\/)?token .*(authorization_code|refresh_token)/, status: 400, reason: 'a sign-in' },
  { requests: /^POST \/v2\/token (text\/plain|\*)/, status: 400, reason: 'a sign-in' },
  { requests: /^POST .* urn:ietf:params:oauth:grant-type:jwt-bearer/, status: 400, reason: 'a trusted sign-in system' },
  { requests: /^POST \/(consent|sign-in|sign-out) /, status: 400, reason: 'the form of a page, with its cookie' },
  { requests: /^POST \/try\//, status: 400, reason: 'the Host of a loopback' },
  { requests: /^(POST|PATCH|DELETE) \/admin\/(?!identities)/, status: 409, reason: 'entries that no file has' },
  { requests: /^DELETE .*\/(browsers|refresh-families)\//, status: 404, reason: 'a linked browser or app' },
];

const ADMIN_TOKEN = 'operator-token-of-the-tests-0123456789';
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

const service: TestService = await startTestService({
  registry: exampleRegistry(),
  modules: [tryItModule()],
  environment: { AUTH_URL, ADMIN_TOKEN, TRY_IT: 'true' },
});
afterAll(() => service.stop());
const document = (await request(`${service.managementUrl}/openapi.json`, {})).body as OpenApi;
const requests = exampleRequestsOf(document);
const named = requests.map((each): [string, ExampleRequest] => [each.name, each]);

let agentId: string;
beforeAll(async () => {
  const { agents } = (await manage(service, 'GET', '/admin/agents', bearer(ADMIN_TOKEN))).body;
  agentId = agents.find(({ email }: { email: string }) => email === EXAMPLE.agentEmail).id;
});

/** The responses to a request with each credential that the document allows, with an agent token and a customer of its own. */
async function responsesTo(example: ExampleRequest): Promise<TestResponse[]> {
  const agentToken = await issueAgentToken(service, { email: EXAMPLE.agentEmail, clientId: EXAMPLE.clientId });
  const backend = { email: 'backend@acme.example', clientId: EXAMPLE.serverClientId };
  const backendToken = await issueAgentToken(service, { ...backend, scope: 'customers:manage' });
  const page = { origin: EXAMPLE.origin };
  const user = { external_id: EXAMPLE.externalId };
  const grant = { grant_type: 'agent_token', response_type: 'token', client_id: EXAMPLE.clientId, ...user };
  const customer = (await service.post(TOKEN, grant, bearer(agentToken))).body;
  const challenge = example.body?.includes('code_verifier') && { code_challenge: EXAMPLE.codeChallenge };
  const transfer = { bearer_type: 'customer', client_id: EXAMPLE.clientId, ...challenge };
  const { identity_transfer_token } = (await service.post(TRANSFER, transfer, bearer(customer.access_token))).body;
  const values = { accessToken: customer.access_token, entityId: customer.entity_id, agentId };
  const { isManagement, method, path, headers, body, schemes } = withValues(example, {
    ...values,
    transferToken: identity_transfer_token,
  });
  const credentials: Record<string, object[]> = {
    '': [page],
    bearer: [{ ...page, ...bearer(customer.access_token) }, { ...page, ...bearer(agentToken) }, bearer(backendToken)],
    client: [basic(EXAMPLE.serverClientId, EXAMPLE.clientSecret)],
    resource_server: [basic(EXAMPLE.resourceServerId, EXAMPLE.clientSecret)],
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
    const statuses = (await responsesTo(each)).map(({ status }) => status);
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
