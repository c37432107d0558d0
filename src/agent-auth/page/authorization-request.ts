import { IsString } from 'class-validator';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Optional } from '../../oauth/parameters.js';
import { CODE_CHALLENGE } from '../../one-time-code/pkce.js';
import { declaredProperties } from '../../platform/declared-properties.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Registry } from '../../registry/registry.js';

/** A request to the authorization page whose client and redirect URI are right: what else is wrong goes back to it. */
export interface AuthorizationRequest {
  client: ClientApplication;
  redirectUri: string;
  responseType: 'code' | 'token';
  state: string | undefined;
  scope: string | undefined;
  codeChallenge: string | undefined;
  prompt: string[];
  /** Whether the answer goes to the window that opened the page, by postMessage. */
  toOpener: boolean;
  /** The first fault, in the words of RFC 6749 section 4.1.2.1. */
  fault: AuthorizationFault | undefined;
  /** The query it came with, to come again with after signing in. */
  query: string;
}

export interface AuthorizationFault {
  error: string;
  /** For the application's developers. */
  hint: string;
}

/** The parameters of the authorization page; `faultOf` has their rules. */
export class AuthorizationQuery {
  @IsString()
  response_type: string;

  @IsString()
  client_id: string;

  @IsString()
  redirect_uri: string;

  @Optional()
  @IsString()
  state?: string;

  @Optional()
  @IsString()
  scope?: string;

  @Optional()
  @IsString()
  code_challenge?: string;

  @Optional()
  @IsString()
  code_challenge_method?: string;

  @Optional()
  @IsString()
  prompt?: string;

  @Optional()
  @IsString()
  flow?: string;
}

const PARAMETERS = declaredProperties(AuthorizationQuery);
const PROMPTS = ['none', 'login', 'consent'];
const VISIBLE = /^[\x20-\x7e]*$/;
const LONGEST_STATE = 1000;

/**
 * Reads the query of the authorization page (specification 4.7).
 *
 * @throws OAuthError `invalid_request` when the client or its redirect URI is not certain: then nothing may be sent to it
 */
export function readAuthorizationRequest(query: string, registry: Registry): AuthorizationRequest {
  const sent = new URLSearchParams(query);
  const client = registry.client(single(sent, 'client_id'));
  if (!client) throw OAuthError.invalidRequest('client_id: unknown');
  requestContext.set({ clientId: client.clientId });
  const redirectUri = single(sent, 'redirect_uri');
  if (!client.redirectUris.includes(redirectUri)) {
    throw OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash");
  }
  const optional = (name: string) => given(sent, name) ?? undefined;
  const expected = client.clientType === 'web' ? 'token' : 'code';
  const asked = optional('response_type');
  return {
    client,
    redirectUri,
    responseType: asked === 'token' || asked === 'code' ? asked : expected,
    state: optional('state'),
    scope: optional('scope'),
    codeChallenge: optional('code_challenge'),
    prompt: optional('prompt')?.split(' ') ?? [],
    toOpener: optional('flow') === 'button' && hasOrigin(redirectUri),
    fault: faultOf(sent, client, redirectUri, expected),
    query,
  };
}

/** A parameter without a value counts as left out (RFC 6749 section 3.1). */
function given(sent: URLSearchParams, name: string): string | null {
  return sent.get(name) || null;
}

function single(sent: URLSearchParams, name: string): string {
  const [value, ...more] = sent.getAll(name);
  if (value === undefined || value === '') throw OAuthError.invalidRequest(`${name}: required`);
  if (more.length > 0) throw OAuthError.invalidRequest(`${name}: given more than once`);
  return value;
}

function faultOf(
  sent: URLSearchParams,
  client: ClientApplication,
  redirectUri: string,
  expected: 'code' | 'token',
): AuthorizationFault | undefined {
  const repeated = PARAMETERS.find((name) => sent.getAll(name).length > 1);
  const asked = given(sent, 'response_type');
  const challenge = given(sent, 'code_challenge');
  const method = given(sent, 'code_challenge_method');
  const prompt = given(sent, 'prompt')?.split(' ') ?? [];
  const flow = given(sent, 'flow');
  const faults: [boolean, string][] = [
    [repeated !== undefined, `${repeated}: given more than once`],
    [asked === null, 'response_type: required'],
    [asked !== expected, `response_type: must be ${expected} for this type of client`],
    [!isWritable(given(sent, 'state')), `state: must be at most ${LONGEST_STATE} visible characters`],
    [challenge !== null && !CODE_CHALLENGE.test(challenge), 'code_challenge: must be 43 characters of base64url'],
    [challenge !== null && method !== 'S256', 'code_challenge_method: must be S256'],
    [challenge === null && method !== null, 'code_challenge: required with code_challenge_method'],
    [challenge === null && client.clientType === 'native', 'code_challenge: required for a native application'],
    [challenge !== null && expected === 'token', 'code_challenge: only with response_type=code'],
    [!prompt.every((each) => PROMPTS.includes(each)), `prompt: must be of ${PROMPTS.join(', ')}`],
    [prompt.includes('none') && prompt.length > 1, 'prompt: none stands alone'],
    [flow !== null && flow !== 'button' && flow !== 'redirect', 'flow: must be button or redirect'],
    [flow === 'button' && !hasOrigin(redirectUri), 'flow: button needs an http(s) redirect_uri'],
  ];
  const hint = faults.find(([isFaulty]) => isFaulty)?.[1];
  return hint === undefined ? undefined : { error: 'invalid_request', hint };
}

/** Whether a window can be named that an answer may go to; a private-use scheme names none. */
function hasOrigin(redirectUri: string): boolean {
  return new URL(redirectUri).origin !== 'null';
}

/** RFC 6749 appendix A.5. */
function isWritable(state: string | null): boolean {
  return state === null || (state.length <= LONGEST_STATE && VISIBLE.test(state));
}
