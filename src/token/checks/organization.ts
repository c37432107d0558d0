import { OAuthError } from '../../oauth/oauth-error.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Organization } from '../../registry/organization.entity.js';
import type { Registry } from '../../registry/registry.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

const GROUP_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The path of a group is only for grants that declare `groups`. */
export function assertGrantServesGroups({ route, grant }: TokenRequest): void {
  if (route.group && !grant.groups) throw OAuthError.invalidRequest('grant_type: not at the address of a group');
}

/** The body may repeat the organization of the path, but not contradict it. */
export function takeOrganizationFromRoute(request: TokenRequest): void {
  const { group } = request.route;
  if (!group) return;
  if (!GROUP_ID.test(group.groupId))
    throw OAuthError.invalidRequest('group_id: must be 1 to 64 letters, digits, _ or -');
  const { organization_id = group.organizationId } = request.parameters;
  if (organization_id !== group.organizationId)
    throw OAuthError.invalidRequest("organization_id: must be the address's");
  request.parameters = { ...request.parameters, organization_id };
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
