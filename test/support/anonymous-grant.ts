import { TOKEN } from './cookie-grant.js';
import { refreshingRegistry, type Stay, WITH_REFRESH } from './customer-refresh.js';
import { ACME, ACME_ORIGIN, ACME_SITE, changed, type testRegistry } from './test-registry.js';
import type { HttpClient, TestResponse } from './test-service.js';

/** The parameters of protocol §4.17. */
export function anonymousBody(more: object = {}): object {
  return { grant_type: 'anonymous', client_id: ACME_SITE, response_type: 'token', organization_id: ACME, ...more };
}

/** The registry of the tests, in which two clients of ACME may use the anonymous grant. */
export function anonymousRegistry(
  ofOrganization: object = {},
  ofClients: object = {},
): ReturnType<typeof testRegistry> {
  const grants = { identity_token: { remember: ['browser', 'refresh_token'] } };
  const registry = refreshingRegistry({ grant_types: [...WITH_REFRESH, 'anonymous'], grants, ...ofClients });
  registry.organizations = changed(registry.organizations, [ACME], ofOrganization);
  return registry;
}

/** Sends the anonymous grant as a page of ACME does. */
export function askAnonymously(service: HttpClient, more: object = {}, headers: object = {}): Promise<TestResponse> {
  return service.post(TOKEN, anonymousBody(more), { origin: ACME_ORIGIN, ...headers });
}

/** A customer of the anonymous grant. */
export async function anonymousCustomer(service: HttpClient): Promise<Stay> {
  return (await askAnonymously(service)).body;
}
