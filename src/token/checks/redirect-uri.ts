import { OAuthError } from '../../oauth/oauth-error.js';
import type { TokenRequest } from '../token-request.js';

/**
 * A `redirect_uri` must be one of the client's registered redirect URIs. `ClientApplication.admitsRedirectUri` compares
 * them.
 */
export function assertRedirectUriRegistered({ body, client }: TokenRequest): void {
  if (body.redirect_uri !== undefined && !client.admitsRedirectUri(body.redirect_uri))
    throw OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash");
}
