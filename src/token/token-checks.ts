import { assertOrganizationOfAgent, authenticateAgent } from './checks/agent.js';
import { assertClientMayUseGrant, identifyClient, takeTokenRateLimit } from './checks/client.js';
import {
  assertGrantServesGroups,
  assertOrganizationAdmitsClient,
  takeOrganizationFromRoute,
} from './checks/organization.js';
import { assertRedirectUriRegistered } from './checks/redirect-uri.js';
import { findGrant, readTokenParameters, validateBody } from './checks/request.js';
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
