import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Registry } from '../../registry/registry.js';
import { CLIENT_CHECKS, hasOrigin, REQUEST_CHECKS } from './authorization-checks.js';
import { AuthorizationParameters } from './authorization-query.js';

/** A request to the authorization page whose client and redirect URI have passed `CLIENT_CHECKS`. */
export interface AuthorizationRequest {
  client: ClientApplication;
  redirectUri: string;
  responseType: 'code' | 'token';
  state: string | undefined;
  scope: string | undefined;
  codeChallenge: string | undefined;
  prompt: string[];
  /** Whether the response goes to the window that opened the page, by postMessage. */
  toOpener: boolean;
  /** The error response to the client, if a check has failed. */
  error: AuthorizationError | undefined;
  /** The query of the request, which the page sends again after the agent has signed in. */
  query: string;
}

/** An error that is reported to the client (RFC 6749 §4.1.2.1). */
export interface AuthorizationError {
  error: string;
  /** For the developers of the client. */
  hint: string;
}

/**
 * Reads and checks the query of the authorization page (protocol §6.1).
 *
 * @throws OAuthError `invalid_request` if the client or its redirect URI fails a check
 */
export function readAuthorizationRequest(query: string, registry: Registry): AuthorizationRequest {
  const parameters = new AuthorizationParameters(query);
  for (const check of CLIENT_CHECKS) check(parameters, registry);
  const { client, redirectUri, expectedResponseType } = parameters;
  const responseType = parameters.value('response_type');
  return {
    client,
    redirectUri,
    responseType: responseType === 'token' || responseType === 'code' ? responseType : expectedResponseType,
    state: parameters.value('state'),
    scope: parameters.value('scope'),
    codeChallenge: parameters.value('code_challenge'),
    prompt: parameters.prompts,
    toOpener: parameters.value('flow') === 'button' && hasOrigin(redirectUri),
    error: errorOf(parameters),
    query,
  };
}

function errorOf(parameters: AuthorizationParameters): AuthorizationError | undefined {
  for (const check of REQUEST_CHECKS) {
    const hint = check(parameters);
    if (hint !== undefined) return { error: 'invalid_request', hint };
  }
  return undefined;
}
