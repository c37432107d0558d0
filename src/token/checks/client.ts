import { OAuthError } from '../../oauth/oauth-error.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/**
 * Finds the client with the requested `client_id`. A request from a browser must come from one of the client's origins.
 *
 * @throws OAuthError `invalid_request`
 */
export function identifyClient(request: TokenRequest, { registry }: TokenServices): void {
  request.client = registry.clientCalling(request.body.client_id, request.http.headers.origin);
  requestContext.set({ clientId: request.client.clientId });
}

/**
 * The client must list the grant in `grant_types`. A client without `grant_types` may use every grant except those that
 * declare `optIn`.
 */
export function assertClientMayUseGrant({ client, grant }: TokenRequest): void {
  if (!client.mayUse(grant.name, grant.optIn)) throw OAuthError.unauthorizedClient('grant_type: not for this client');
}

/**
 * Counts the request against the client's limit. Requests that fail an earlier check do not count. Requests that fail a
 * later check count.
 */
export function takeTokenRateLimit({ client }: TokenRequest, { limits }: TokenServices): void {
  const waitSeconds = limits.take('tokens', client.clientId);
  if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'tokens');
}
