import type { RegistryDocument } from '../../packages/conformance-kit/src/registry-file.js';
import { bearer } from './authorization-headers.js';
import { refreshingRegistry } from './customer-refresh.js';
import { issueAgentToken } from './operator-commands.js';
import { ACME_AGENT, ACME_SITE, RIVAL_AGENT, RIVAL_SITE } from './test-registry.js';
import type { HttpClient, TestResponse, TestService } from './test-service.js';

export const EXPORT = '/v2/customer/export';
export const ERASE = '/v2/customer/erase';

const SCOPES = ['customers:own', 'customers:manage'];
/** The clients and agents that list `customers:manage`. */
const MANAGERS: unknown[] = [ACME_SITE, ACME_AGENT.email, RIVAL_SITE, RIVAL_AGENT.email];

/** The registry of the tests, in which a client and an agent of two organizations list `customers:manage`. */
export function managingRegistry(): RegistryDocument {
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  const managing = (entry: object) => {
    const { client_id, email } = entry as { client_id?: string; email?: string };
    return MANAGERS.includes(client_id ?? email) ? { ...entry, scopes: SCOPES } : entry;
  };
  return { ...registry, clients: registry.clients.map(managing), agents: registry.agents.map(managing) };
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
