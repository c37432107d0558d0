import { OAuthError } from '../../oauth/oauth-error.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/** Counts the request against the client's limit. A request that an earlier check has rejected does not count. */
export function takeTokenRateLimit({ client }: TokenRequest, { limits }: TokenServices): void {
  const waitSeconds = limits.take('tokens', client.clientId);
  if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'tokens');
}
