import { OAuthError } from '../../oauth/oauth-error.js';
import { REQUEST_ERRORS } from '../../oauth/request-errors.js';
import { CODE_CHALLENGE } from '../../one-time-code/code-proof.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Registry } from '../../registry/registry.js';
import { AuthorizationParameters, PARAMETER_NAMES } from './authorization-query.js';

/**
 * The checks whose failure is shown to the agent on an error page. Until they pass, the redirect URI may be an
 * attacker's, so the page does not redirect to it (RFC 6749 §4.1.2.1).
 */
export const CLIENT_CHECKS: ((parameters: AuthorizationParameters, registry: Registry) => void)[] = [
  identifyClient,
  assertRedirectUriRegistered,
];

/**
 * The checks whose failure is reported to the client, as `invalid_request` with a hint. They run in this order, and the
 * first failure is reported. `Authorizer.decide` then makes the checks that depend on the agent.
 */
export const REQUEST_CHECKS: ((parameters: AuthorizationParameters) => string | undefined)[] = [
  repeatedParameter,
  responseTypeViolation,
  stateViolation,
  pkceViolation,
  promptViolation,
  flowViolation,
];

/** @throws OAuthError `invalid_request` if the parameter is missing or repeated */
function singleValue(parameters: AuthorizationParameters, name: string): string {
  const [value, ...more] = parameters.values(name);
  if (value === undefined || value === '') throw OAuthError.invalidRequest(`${name}: required`);
  if (more.length > 0) throw OAuthError.invalidRequest(`${name}: given more than once`);
  return value;
}

/** No parameter may be repeated (RFC 6749 §3.1). */
function repeatedParameter(parameters: AuthorizationParameters): string | undefined {
  const repeated = PARAMETER_NAMES.find((name) => parameters.values(name).length > 1);
  return repeated && `${repeated}: given more than once`;
}

/** Finds the client with the requested `client_id`. */
export function identifyClient(parameters: AuthorizationParameters, registry: Registry): void {
  const client = registry.client(singleValue(parameters, 'client_id'));
  if (!client) throw REQUEST_ERRORS.clientUnknown();
  requestContext.set({ clientId: client.clientId });
  parameters.client = client;
}

/**
 * The redirect URI must equal a registered one, character for character (RFC 9700 §2.1). `redirect_uri_match: prefix`
 * has no effect here. It is for the grants of customers, which never redirect to the URI.
 */
export function assertRedirectUriRegistered(parameters: AuthorizationParameters): void {
  const redirectUri = singleValue(parameters, 'redirect_uri');
  if (!parameters.client.redirectUris.includes(redirectUri)) throw REQUEST_ERRORS.redirectUriUnknown();
  parameters.redirectUri = redirectUri;
}

/** Whether a redirect URI has an origin. A URI with a private-use scheme has none. */
export function hasOrigin(redirectUri: string): boolean {
  return new URL(redirectUri).origin !== 'null';
}

/** Each type of client may use one response type only. */
function responseTypeViolation(parameters: AuthorizationParameters): string | undefined {
  const responseType = parameters.value('response_type');
  const expected = parameters.expectedResponseType;
  if (responseType === undefined) return 'response_type: required';
  return responseType === expected ? undefined : `response_type: must be ${expected} for this type of client`;
}

/** RFC 6749 appendix A.5. */
const VISIBLE_CHARACTERS = /^[\x20-\x7e]*$/;
const MAX_STATE_CHARACTERS = 1000;

function stateViolation(parameters: AuthorizationParameters): string | undefined {
  const state = parameters.value('state') ?? '';
  const isValid = state.length <= MAX_STATE_CHARACTERS && VISIBLE_CHARACTERS.test(state);
  return isValid ? undefined : `state: must be at most ${MAX_STATE_CHARACTERS} visible characters`;
}

/** PKCE with S256 (RFC 7636). A native application must use it (RFC 8252 §8.1). */
function pkceViolation(parameters: AuthorizationParameters): string | undefined {
  const challenge = parameters.value('code_challenge');
  const method = parameters.value('code_challenge_method');
  if (challenge === undefined) {
    if (method !== undefined) return REQUEST_ERRORS.challengeRequired().hint;
    const isNative = parameters.client.clientType === 'native';
    return isNative ? 'code_challenge: required for a native application' : undefined;
  }
  if (!CODE_CHALLENGE.test(challenge)) return 'code_challenge: must be 43 characters of base64url';
  if (method !== 'S256') return 'code_challenge_method: must be S256';
  return parameters.expectedResponseType === 'token' ? 'code_challenge: only with response_type=code' : undefined;
}

const PROMPTS = ['none', 'login', 'consent'];

/** `prompt` as in OpenID Connect Core 1.0 §3.1.2.1: `none` excludes every other value. */
function promptViolation({ prompts }: AuthorizationParameters): string | undefined {
  if (!prompts.every((each) => PROMPTS.includes(each))) return `prompt: must be a list of ${PROMPTS.join(', ')}`;
  return prompts.includes('none') && prompts.length > 1 ? 'prompt: none excludes other values' : undefined;
}

/** `flow=button` sends the response by postMessage, which needs the origin of the receiving page. */
function flowViolation(parameters: AuthorizationParameters): string | undefined {
  const flow = parameters.value('flow');
  if (flow !== undefined && flow !== 'button' && flow !== 'redirect') return 'flow: must be button or redirect';
  return flow === 'button' && !hasOrigin(parameters.redirectUri)
    ? 'flow: button needs an http(s) redirect_uri'
    : undefined;
}

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
