import { type BasicCredentials, readBasicCredentials } from '../oauth/basic-credentials.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { optionalString } from '../oauth/parameters.js';

/** The id and the secret that a request contains, not yet verified. */
export type ClientCredentials = Partial<BasicCredentials>;

/**
 * Reads the credentials of `client_secret_basic` or `client_secret_post` (RFC 6749 §2.3.1). A client without a secret
 * has only an id.
 *
 * @throws OAuthError `invalid_client`, or `invalid_request` if the request authenticates in two ways
 */
export function readClientCredentials(
  authorization: string | undefined,
  parameters: Record<string, unknown>,
): ClientCredentials {
  const id = optionalString('client_id', parameters.client_id);
  const secret = optionalString('client_secret', parameters.client_secret);
  if (authorization === undefined) return { ...(id !== undefined && { id }), ...(secret !== undefined && { secret }) };
  const basic = readBasicCredentials(authorization);
  if (!basic) throw OAuthError.invalidClient('Authorization: not Basic credentials');
  if (secret !== undefined) throw OAuthError.invalidRequest('client_secret: given twice, also by Authorization');
  if (id !== undefined && id !== basic.id)
    throw OAuthError.invalidRequest('client_id: must equal the id in Authorization');
  return basic;
}
