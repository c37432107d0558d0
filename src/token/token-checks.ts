import { assertOrganizationOfAgent, authenticateAgent } from './checks/agent.js';
import { assertClientMayUseGrant, identifyClient, takeTokenRateLimit } from './checks/client.js';
import { assertGrantServesGroups, findOrganization, setOrganizationFromPath } from './checks/organization.js';
import { assertRedirectUriRegistered } from './checks/redirect-uri.js';
import { findGrant, readTokenParameters, validateBody } from './checks/request.js';
import type { TokenRequest } from './token-request.js';
import type { TokenServices } from './token-services.js';

/** @throws OAuthError the error response to the request */
export type TokenCheck = (request: TokenRequest, services: TokenServices) => void | Promise<void>;

/**
 * The checks of every token request, in their order. The first check that fails determines the error response. A check
 * can read the values that the checks before it have set. Then the grant checks the caller's proof. If the grant
 * returns another organization than the one checked here, the endpoint checks that one after the grant.
 */
export const TOKEN_CHECKS: TokenCheck[] = [
  readTokenParameters,
  findGrant,
  assertGrantServesGroups,
  authenticateAgent,
  setOrganizationFromPath,
  validateBody,
  identifyClient,
  assertRedirectUriRegistered,
  assertClientMayUseGrant,
  takeTokenRateLimit,
  assertOrganizationOfAgent,
  findOrganization,
];
