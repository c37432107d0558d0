import { OAuthError } from '../../oauth/oauth-error.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Organization } from '../../registry/organization.entity.js';
import type { Registry } from '../../registry/registry.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/** An agent acts in its own organization only. */
export function assertOrganizationOfAgent({ agent, body }: TokenRequest): void {
  if (agent && body.organization_id !== undefined && body.organization_id !== agent.organizationId)
    throw OAuthError.invalidRequest("organization_id: must be the agent's");
}

/** The organization must admit the client, and separate its groups if the path names one. */
export function assertOrganizationAdmitsClient(request: TokenRequest, { registry }: TokenServices): void {
  const { body, agent, client, route } = request;
  const organizationId = body.organization_id ?? agent?.organizationId;
  if (organizationId === undefined) return;
  const organization = admittingOrganization(registry, organizationId, client);
  if (route.group && organization.chatBetweenGroups)
    throw OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity');
  request.organization = organization;
}

/**
 * The organization with an id, which must admit the client.
 *
 * @throws OAuthError `invalid_request`
 */
export function admittingOrganization(
  registry: Registry,
  organizationId: string,
  client: ClientApplication,
): Organization {
  const organization = registry.organization(organizationId);
  if (!organization) throw OAuthError.invalidRequest('organization_id: unknown');
  requestContext.set({ organizationId });
  if (!organization.admits(client)) throw OAuthError.invalidRequest('client_id: not usable in this organization');
  return organization;
}
