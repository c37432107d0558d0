import { assertOrganizationOfAgent, authenticateAgent } from './checks/agent.js';
import { assertClientMayUseGrant, identifyClient, takeTokenRateLimit } from './checks/client.js';
import { applyOrganizationOfRoute, assertGrantServesGroups, findOrganization } from './checks/organization.js';
import { assertRedirectUriRegistered } from './checks/redirect-uri.js';
import { findGrant, readTokenParameters, validateBody } from './checks/request.js';
import type { TokenRequest } from './token-request.js';
import type { TokenServices } from './token-services.js';

/** @throws OAuthError the error response to the request */
export type TokenCheck = (request: TokenRequest, services: TokenServices) => void | Promise<void>;

/**
 * The checks of every token request, in their order: the first that fails decides the error response. Each sets what the checks
 * after it read. Then the grant checks what the caller presents, and the endpoint what the grant returns.
 */
export const TOKEN_CHECKS: TokenCheck[] = [
  readTokenParameters,
  findGrant,
  assertGrantServesGroups,
  authenticateAgent,
  applyOrganizationOfRoute,
  validateBody,
  identifyClient,
  assertRedirectUriRegistered,
  assertClientMayUseGrant,
  takeTokenRateLimit,
  assertOrganizationOfAgent,
  findOrganization,
];
