import { TokenVerifierError } from './errors.js';

/** The agent that obtained a customer token (RFC 8693 §4.1). */
export interface Actor {
  /** The agent's id. */
  readonly sub: string;
  /** The session of the agent's token, with which the customer token ends. */
  readonly sid: string;
  /** The epoch of that session; 0 if absent. */
  readonly ep?: number;
  /** The client of the agent's token. */
  readonly client_id: string;
  /** The trusted issuer of the agent's token; absent for an agent of the service. */
  readonly iss?: string;
}

/** The claims of an access token. Times are in seconds since 1970. A grant may add claims of its own. */
export interface AccessTokenClaims {
  readonly iss: string;
  /** The customer or agent. */
  readonly sub: string;
  readonly aud: string;
  readonly client_id: string;
  readonly organization_id: string;
  readonly iat: number;
  readonly exp: number;
  readonly nbf?: number;
  readonly jti: string;
  /** Only in agent tokens: the granted scopes, separated by spaces. */
  readonly scope?: string;
  /** Only in customer tokens: the name of the grant. */
  readonly gty?: string;
  /** Only in tokens of a customer of a group. */
  readonly group_id?: string;
  /** Only in customer tokens: the generation of the customer; 0 if absent. */
  readonly gen?: number;
  /** The session of the token; absent in a customer token without a session. */
  readonly sid?: string;
  /** The epoch of the session; 0 if absent. */
  readonly ep?: number;
  /** Only in tokens of a user of the organization, or by a grant that verifies users. `userVerified` says it too. */
  readonly user_verified?: true;
  readonly act?: Actor;
  readonly [claim: string]: unknown;
}

/** The claims of a valid token, and what the verifier concludes from them. */
export interface VerifiedClaims extends AccessTokenClaims {
  /**
   * `true` if the customer is a user of the organization, or a grant has verified the person; `false` for each other
   * customer and for agents. A token with `act` is for the user too, but the agent holds it.
   */
  readonly userVerified: boolean;
}

/** How far the clock of the service may be ahead. There is no tolerance for `exp`. */
const CLOCK_SKEW_SECONDS = 30;

/**
 * Reads the payload of a token whose signature is valid. The claims are frozen, because several requests share them.
 */
export function readClaims(payload: Uint8Array): VerifiedClaims {
  let claims: unknown;
  try {
    claims = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch (cause) {
    throw new TokenVerifierError('rejected_claim', { cause });
  }
  if (!isAccessTokenClaims(claims)) throw new TokenVerifierError('rejected_claim');
  // last, because a grant may declare a claim of this name
  return deepFreeze({ ...claims, userVerified: claims.user_verified === true });
}

export function assertIssuerAndAudience(claims: AccessTokenClaims, issuer: string, audiences: readonly string[]): void {
  if (claims.iss !== issuer) throw new TokenVerifierError('other_issuer');
  if (!audiences.includes(claims.aud)) throw new TokenVerifierError('other_audience');
}

/** @param now milliseconds since 1970 */
export function assertTimes({ exp, iat, nbf = iat }: AccessTokenClaims, now: number): void {
  const seconds = Math.floor(now / 1000);
  if (seconds >= exp) throw new TokenVerifierError('expired');
  if (Math.max(iat, nbf) > seconds + CLOCK_SKEW_SECONDS) throw new TokenVerifierError('not_yet_valid');
}

/** Checks the types of the claims that decide whether a token is valid. */
function isAccessTokenClaims(claims: unknown): claims is AccessTokenClaims {
  if (!isObject(claims)) return false;
  const { iss, sub, aud, client_id, jti, iat, exp, nbf, gen, sid, ep, act } = claims;
  return (
    [iss, sub, aud, client_id, jti].every((claim) => typeof claim === 'string') &&
    [iat, exp].every(Number.isFinite) &&
    (nbf === undefined || Number.isFinite(nbf)) &&
    (sid === undefined || typeof sid === 'string') &&
    [gen, ep].every(isOptionalCount) &&
    (act === undefined || isActor(act))
  );
}

function isActor(value: unknown): boolean {
  return isObject(value) && [value.sub, value.sid].every((id) => typeof id === 'string') && isOptionalCount(value.ep);
}

function isOptionalCount(value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function deepFreeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) if (typeof member === 'object' && member !== null) deepFreeze(member);
  return Object.freeze(value);
}
