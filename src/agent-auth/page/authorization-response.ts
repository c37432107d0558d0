import { MALFORMED } from '../../oauth/oauth-error.js';
import type { AuthorizationError, AuthorizationRequest } from './authorization-request.js';

/** The parameters of an answer to the application, in the order in which they are written. */
export type ResponseParameters = Record<string, string>;

const DESCRIPTIONS: Record<string, string> = {
  access_denied: 'The agent, or this service, has refused the request',
  invalid_scope: 'The application, the agent and the request have no scope in common',
  login_required: 'The agent is not signed in',
  consent_required: 'The agent has not consented to this application yet',
  invalid_request: MALFORMED,
};

/** An error as an answer (RFC 6749 sections 4.1.2.1 and 4.2.2.1). */
export function errorParameters({ error, hint }: AuthorizationError): ResponseParameters {
  return { error, error_description: DESCRIPTIONS[error] ?? error, ...(hint && { error_hint: hint }) };
}

/** An answer with what every answer carries: `state` as it came, and who we are (RFC 9207). */
export function completed(
  parameters: ResponseParameters,
  { state }: AuthorizationRequest,
  issuer: string,
): ResponseParameters {
  return { ...parameters, ...(state !== undefined && { state }), iss: issuer };
}

/**
 * Where the browser goes with an answer: in the query for a code, in the fragment for a token, which no server sees.
 * `redirectUri` is one of the client's, character for character, and has no fragment.
 */
export function redirectTarget(
  { redirectUri, responseType }: AuthorizationRequest,
  parameters: ResponseParameters,
): string {
  const text = new URLSearchParams(parameters).toString().replaceAll('+', '%20');
  if (responseType === 'token') return `${redirectUri}#${text}`;
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${text}`;
}
