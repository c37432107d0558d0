import { OAuthError } from '../../../oauth/oauth-error.js';
import type { AuthorizationParameters } from '../authorization-query.js';
import { singleValue } from './single-value.js';

/**
 * The redirect URI must equal a registered one, character for character (RFC 9700 §2.1). `redirect_uri_match: prefix`
 * has no effect here. It is for the grants of customers, which never redirect to the URI.
 */
export function assertRedirectUriRegistered(parameters: AuthorizationParameters): void {
  const redirectUri = singleValue(parameters, 'redirect_uri');
  if (!parameters.client.redirectUris.includes(redirectUri))
    throw OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash");
  parameters.redirectUri = redirectUri;
}

/** Whether a redirect URI has an origin. A URI with a private-use scheme has none. */
export function hasOrigin(redirectUri: string): boolean {
  return new URL(redirectUri).origin !== 'null';
}
