import { bearer } from './authorization-headers.js';
import { refreshingRegistry } from './customer-refresh.js';
import { issueAgentToken } from './operator-commands.js';
import { ACME_AGENT, ACME_SITE, changed, RIVAL_AGENT, RIVAL_SITE, type testRegistry } from './test-registry.js';
import type { HttpClient, TestResponse, TestService } from './test-service.js';

export const EXPORT = '/v2/customer/export';
export const ERASE = '/v2/customer/erase';

const SCOPES = ['customers:own', 'customers:manage'];
/** The clients and agents that list `customers:manage`. */
const MANAGERS = [ACME_SITE, ACME_AGENT.email, RIVAL_SITE, RIVAL_AGENT.email];

/** The registry of the tests, in which a client and an agent of two organizations list `customers:manage`. */
export function managingRegistry(): ReturnType<typeof testRegistry> {
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  const managing = (entries: object[]) => changed(entries, MANAGERS, { scopes: SCOPES });
  return { ...registry, clients: managing(registry.clients), agents: managing(registry.agents) };
}

/** An agent token with both scopes of customers. */
export function managerToken(service: TestService, more: { email?: string; clientId?: string } = {}): Promise<string> {
  return issueAgentToken(service, { ...more, scope: SCOPES.join(' ') });
}

/** Exports or erases a customer as an agent. */
export function manageCustomer(
  service: HttpClient,
  path: string,
  token: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  return service.post(path, body, { ...bearer(token), ...headers });
}
