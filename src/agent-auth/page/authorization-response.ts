import { MALFORMED } from '../../oauth/error-body.js';
import type { AuthorizationRequest } from './authorization-request.js';

export type ResponseParameters = Record<string, string>;

const DESCRIPTIONS: Record<string, string> = {
  access_denied: 'The agent or the service denied the request',
  invalid_scope: 'The application, the agent and the request have no scope in common',
  login_required: 'The agent is not signed in',
  consent_required: 'The agent has not consented to this application yet',
  invalid_request: MALFORMED,
};

/** The parameters of an error response (RFC 6749 §4.1.2.1, §4.2.2.1). */
export function errorParameters(error: string, hint: string): ResponseParameters {
  return { error, error_description: DESCRIPTIONS[error] ?? error, error_hint: hint };
}

/**
 * The URL of a response, with `state` as the client sent it, and the issuer (RFC 9207). A token is in the fragment,
 * which browsers do not send to servers. No registered redirect URI has a fragment.
 */
export function responseUrl(request: AuthorizationRequest, parameters: ResponseParameters, iss: string): string {
  const { redirectUri, responseType, state } = request;
  const all = { ...parameters, ...(state !== undefined && { state }), iss };
  const encoded = new URLSearchParams(all).toString().replaceAll('+', '%20');
  if (responseType === 'token') return `${redirectUri}#${encoded}`;
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${encoded}`;
}
