import { decodeForm } from '../../oauth/form.js';
import { OAuthError, REQUEST_ERRORS, type RequestFacts } from '../../oauth/oauth-error.js';
import { CODE_CHALLENGE } from '../../oauth/pkce.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiOptionalString, ApiString, declaredProperties } from '../../platform/validation/validation.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Registry } from '../../registry/registry.js';
import { spaceDelimited } from '../agent-token-issuer.js';
/** The query parameters of the authorization page, for the OpenAPI document. Their rules are below. */
export class AuthorizationQuery {
  @ApiString('`token` for web applications, `code` for servers and native applications.', 'code')
  response_type!: string;

  @ApiString('The application that asks for access.', EXAMPLE.serverClientId)
  client_id!: string;

  @ApiString(
    'The URL that gets the response. It equals a registered one, character for character.',
    EXAMPLE.redirectUri,
  )
  redirect_uri!: string;

  @ApiOptionalString(
    'A text that the redirect repeats. Use it to bind the response to the session of the user (RFC 6749 §10.12).',
    'EXAMPLE-STATE',
  )
  state?: string;

  @ApiOptionalString('The requested scopes, separated by spaces. If omitted, all scopes of the client.', EXAMPLE.scope)
  scope?: string;

  @ApiOptionalString(
    'The SHA-256 of a `code_verifier`, in base64url (RFC 7636). Required for native applications.',
    EXAMPLE.codeChallenge,
  )
  code_challenge?: string;

  @ApiOptionalString('The only method. Required with a `code_challenge`.', 'S256')
  code_challenge_method?: string;

  @ApiOptionalString('`none` shows no page. `login` asks for the password again, `consent` for consent.', 'login')
  prompt?: string;
}

const PARAMETER_NAMES = declaredProperties(AuthorizationQuery);

/** A request to the authorization page whose client and redirect URI were checked. */
export interface AuthorizationRequest {
  client: ClientApplication;
  redirectUri: string;
  responseType: 'code' | 'token';
  state: string | undefined;
  scope: string | undefined;
  codeChallenge: string | undefined;
  prompt: string[];
  /** Why the request is invalid, for the developers of the client. */
  violation: string | undefined;
  /** The query of the request, which the page sends again after the agent has signed in. */
  query: string;
}

/** The first value of each parameter, and the client. A parameter without a value is omitted (RFC 6749 §3.1). */
interface RequestParameters extends Partial<AuthorizationQuery> {
  client: ClientApplication;
  redirect_uri: string;
}

/**
 * Until the client and the redirect URI are known to be right, the URI may be an attacker's. The page then shows the
 * error, and does not redirect (RFC 6749 §4.1.2.1, protocol §6.1). @throws OAuthError `invalid_request`
 */
export function readAuthorizationRequest(query: string, registry: Registry): AuthorizationRequest {
  const fields = decodeForm(query, 'query');
  const client = registry.client(singleValue(fields, 'client_id'));
  if (!client) throw REQUEST_ERRORS.clientUnknown();
  const facts = { clientId: client.clientId };
  const redirectUri = singleValue(fields, 'redirect_uri', facts);
  if (!isRegistered(redirectUri, client)) throw REQUEST_ERRORS.redirectUriUnknown().about(facts);
  const values = PARAMETER_NAMES.map((name) => [name, fields.get(name) || undefined]);
  const parameters: RequestParameters = { ...Object.fromEntries(values), client, redirect_uri: redirectUri };
  const { response_type: responseType, state, scope, code_challenge: codeChallenge } = parameters;
  return {
    ...{ client, redirectUri, state, scope, codeChallenge, query },
    responseType: responseType === 'token' || responseType === 'code' ? responseType : expectedResponseType(client),
    prompt: promptsOf(parameters),
    violation: violationOf(fields, parameters),
  };
}

/** The URI of a native application on a loopback address, which the system gives another port each time. */
const LOOPBACK_URI = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(\/.*)$/;
/** The length of the column that keeps it with the code. */
const MAX_REDIRECT_URI_CHARACTERS = 2_000;
const withoutPort = (uri: string) => uri.replace(LOOPBACK_URI, '$1$2');

/**
 * Character for character (RFC 9700 §2.1), except the port of a native application's loopback URI (RFC 8252 §7.3).
 * `redirect_uri_match: prefix` is for grants, which never redirect.
 */
function isRegistered(redirectUri: string, { clientType, redirectUris }: ClientApplication): boolean {
  if (redirectUris.includes(redirectUri)) return true;
  if (clientType !== 'native' || !LOOPBACK_URI.test(redirectUri)) return false;
  if (!URL.canParse(redirectUri) || redirectUri.length > MAX_REDIRECT_URI_CHARACTERS) return false;
  return redirectUris.some((uri) => withoutPort(uri) === withoutPort(redirectUri));
}

/** @throws OAuthError `invalid_request` if the parameter is missing or repeated */
function singleValue(fields: URLSearchParams, name: string, facts: RequestFacts = {}): string {
  const [value, second] = fields.getAll(name);
  if (!value) throw OAuthError.invalidRequest(`${name}: required`).about(facts);
  if (second !== undefined) throw OAuthError.invalidRequest(`${name}: given more than once`).about(facts);
  return value;
}

/** A web application gets its token at the page. Any other client gets a code. */
function expectedResponseType({ clientType }: ClientApplication): 'code' | 'token' {
  return clientType === 'web' ? 'token' : 'code';
}

function promptsOf({ prompt }: RequestParameters): string[] {
  return spaceDelimited(prompt ?? '');
}

/** `Authorizer.decide` then makes the checks that depend on the agent. */
function violationOf(fields: URLSearchParams, parameters: RequestParameters): string | undefined {
  // no parameter may be repeated (RFC 6749 §3.1)
  const repeated = PARAMETER_NAMES.find((name) => fields.getAll(name).length > 1);
  if (repeated) return `${repeated}: given more than once`;
  const violations = [responseTypeViolation, stateViolation, pkceViolation, promptViolation];
  return violations.map((violation) => violation(parameters)).find((violation) => violation !== undefined);
}

function responseTypeViolation({ response_type, client }: RequestParameters): string | undefined {
  const expected = expectedResponseType(client);
  if (response_type === undefined) return 'response_type: required';
  return response_type === expected ? undefined : `response_type: must be ${expected} for this type of client`;
}

/** RFC 6749 appendix A.5. */
const VISIBLE_CHARACTERS = /^[\x20-\x7e]*$/;
const MAX_STATE_CHARACTERS = 1000;

function stateViolation({ state = '' }: RequestParameters): string | undefined {
  const isValid = state.length <= MAX_STATE_CHARACTERS && VISIBLE_CHARACTERS.test(state);
  return isValid ? undefined : `state: must be at most ${MAX_STATE_CHARACTERS} visible characters`;
}

/** PKCE with S256 (RFC 7636). A native application must use it (RFC 8252 §8.1). */
function pkceViolation({ client, code_challenge, code_challenge_method }: RequestParameters): string | undefined {
  if (code_challenge === undefined) {
    if (code_challenge_method !== undefined) return REQUEST_ERRORS.challengeRequired().hint;
    return client.clientType === 'native' ? 'code_challenge: required for a native application' : undefined;
  }
  if (!CODE_CHALLENGE.test(code_challenge)) return 'code_challenge: must be 43 characters of base64url';
  if (code_challenge_method !== 'S256') return 'code_challenge_method: must be S256';
  return expectedResponseType(client) === 'token' ? 'code_challenge: only with response_type=code' : undefined;
}

const PROMPTS = ['none', 'login', 'consent'];

/** `prompt` as in OpenID Connect Core 1.0 §3.1.2.1: `none` excludes every other value. */
function promptViolation(parameters: RequestParameters): string | undefined {
  const prompts = promptsOf(parameters);
  if (!prompts.every((each) => PROMPTS.includes(each))) return `prompt: must be a list of ${PROMPTS.join(', ')}`;
  return prompts.includes('none') && prompts.length > 1 ? 'prompt: none excludes other values' : undefined;
}
