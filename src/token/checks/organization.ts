import { GROUP_ID, GROUP_ID_RULE } from '../../identity/customer.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { admittingOrganization } from '../../registry/admitting-organization.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/** Only grants that declare `groups` are available on the path of a group. */
export function assertGrantServesGroups({ route, grant }: TokenRequest): void {
  if (route.group && !grant.groups)
    throw OAuthError.invalidRequest('grant_type: not supported by the route of a group');
}

/**
 * Checks the group of the path, and adds the organization of the path to the parameters. The body may repeat the
 * organization, but not contradict it: that is `invalid_request`, 400.
 */
export function setOrganizationFromPath(request: TokenRequest): void {
  const { group } = request.route;
  if (!group) return;
  if (!GROUP_ID.test(group.groupId)) throw OAuthError.invalidRequest(`group_id: ${GROUP_ID_RULE}`);
  const { organization_id = group.organizationId } = request.parameters;
  if (organization_id !== group.organizationId)
    throw OAuthError.invalidRequest('organization_id: must equal the organization of the path');
  request.parameters = { ...request.parameters, organization_id };
}

/**
 * Finds the organization. It must admit the client. The path of a group is only for an organization whose groups have
 * separate identities (`chatBetweenGroups` is false).
 */
export function findOrganization(request: TokenRequest, { registry }: TokenServices): void {
  const { organizationId, client, route } = request;
  if (organizationId === undefined) return;
  const organization = admittingOrganization(registry, organizationId, client);
  if (route.group && organization.chatBetweenGroups)
    throw OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity');
  request.organization = organization;
}
