import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from './client-application.entity.js';
import type { Organization } from './organization.entity.js';
import type { Registry } from './registry.js';

/** The hints that the OpenAPI document shows too. */
export const ORGANIZATION_HINTS = {
  unknown: 'organization_id: unknown',
  notUsable: 'client_id: not usable in this organization',
} as const;

/**
 * Finds an organization that admits the client.
 *
 * @throws OAuthError `invalid_request` if the organization is unknown or does not admit the client
 */
export function admittingOrganization(
  registry: Registry,
  organizationId: string,
  client: ClientApplication,
): Organization {
  const organization = registry.organization(organizationId);
  if (!organization) throw OAuthError.invalidRequest(ORGANIZATION_HINTS.unknown);
  requestContext.set({ organizationId });
  if (!organization.admits(client)) throw OAuthError.invalidRequest(ORGANIZATION_HINTS.notUsable);
  return organization;
}
