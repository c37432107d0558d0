import { authenticateAgent } from './checks/authenticate-agent.js';
import { assertClientMayUseGrant, identifyClient } from './checks/client.js';
import { findGrant } from './checks/find-grant.js';
import { assertGrantServesGroups, takeOrganizationFromRoute } from './checks/group-route.js';
import { assertOrganizationAdmitsClient, assertOrganizationOfAgent } from './checks/organization.js';
import { readTokenParameters } from './checks/read-token-parameters.js';
import { assertRedirectUriRegistered } from './checks/redirect-uri.js';
import { takeTokenRateLimit } from './checks/token-rate-limit.js';
import { validateBody } from './checks/validate-body.js';
import type { TokenRequest } from './token-request.js';
import type { TokenServices } from './token-services.js';

/** @throws OAuthError the error response to the request */
export type TokenCheck = (request: TokenRequest, services: TokenServices) => void | Promise<void>;

/**
 * The checks of every token request, in their order: the first that fails decides the error response. After them the grant
 * itself checks what the caller presents.
 */
export const TOKEN_CHECKS: TokenCheck[] = [
  readTokenParameters,
  findGrant,
  assertGrantServesGroups,
  authenticateAgent,
  takeOrganizationFromRoute,
  validateBody,
  identifyClient,
  assertRedirectUriRegistered,
  assertClientMayUseGrant,
  takeTokenRateLimit,
  assertOrganizationOfAgent,
  assertOrganizationAdmitsClient,
];
