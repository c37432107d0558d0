import { Injectable } from '@nestjs/common';
import type { CryptoKey, JSONWebKeySet, JWK, JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { jose, KeySet } from './key-set.js';
import { type KeySource, keysInFile, remoteKeys, signatureKeys } from './key-sources.js';
import { OAuthError } from './oauth-error.js';

/** Where the public keys of an issuer are: one of the three. */
export interface KeyLocation {
  jwks?: JSONWebKeySet | undefined;
  jwks_uri?: string | undefined;
  /** The name of a file in `JWKS_DIR`. */
  jwks_file?: string | undefined;
}

/** What a JWT of another issuer must fulfil, besides its form, its signature and its times. */
export interface JwtRules {
  keys: KeyLocation;
  issuer: string;
  /** Values of which `aud` must have one. */
  audience: string | string[];
  /** Whether `aud` must have no other value. */
  isOnlyAudience?: boolean;
  algorithms: readonly string[];
  /** The accepted values of `typ`, without `application/`. An empty text accepts a header without `typ`. */
  types: readonly string[];
  /** Whether the header may bring a key. The key is ignored, because the keys of an issuer are configured. */
  mayBringKey?: boolean;
  requiredClaims: string[];
  /** The time from `iat`, or from now without it, to `exp`. */
  maxLifetimeSeconds?: number;
}

/** The algorithms of JWTs whose issuer is in the registry. A holder of a symmetric key can sign too. */
export const ASSERTION_ALGORITHMS = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'];

/** Why a JWT is not valid. The code is one of jose. */
export class InvalidJwt extends Error {
  /** @param payload the claims, if the signature is valid */
  constructor(
    readonly code: string,
    readonly claim = '',
    readonly payload?: JWTPayload,
  ) {
    super(`${code} ${claim}`.trim());
  }
}

const CLAIM_REJECTED = 'ERR_JWT_CLAIM_VALIDATION_FAILED';
/** Headers by which a JWT brings its own key (RFC 8725 §3.10). */
const KEY_HEADERS = ['jwk', 'jku', 'x5u', 'x5c'];
const MAX_CHARACTERS = 8_192;
/** A caller without credentials chooses whether a JWT has a `kid`, and each key that is tried takes a millisecond. */
const MAX_TRIED_KEYS = 4;
const SEGMENT = /^[A-Za-z0-9_-]+$/;
/** `iat` and `nbf` may be this far in the future, because the issuer's clock may be ahead. A passed `exp` is passed. */
const ISSUER_CLOCK_SKEW_SECONDS = 30;

/** Verifies the JWTs of all other issuers, and holds their keys (RFC 7523 §3, RFC 8725). */
@Injectable()
export class ForeignJwts {
  private readonly inlineKeys = new WeakMap<object, JWTVerifyGetKey>();
  private readonly keySets = new Map<string, KeySet>();

  constructor(
    private readonly clock: Clock,
    private readonly configuration: Configuration,
  ) {}

  /**
   * Verifies form, header, signature, times and the rules of a JWT. If several keys match its header, one of them must
   * verify it: a set may have a key twice, two keys with one `kid`, or keys without a `kid`.
   *
   * @throws InvalidJwt; OAuthError 503 while the keys cannot be loaded
   */
  async verify(token: string, rules: JwtRules): Promise<JWTPayload> {
    assertAcceptedForm(token, rules);
    const options = {
      ...{ algorithms: [...rules.algorithms], issuer: rules.issuer, audience: rules.audience },
      ...{ requiredClaims: rules.requiredClaims, clockTolerance: ISSUER_CLOCK_SKEW_SECONDS },
      currentDate: new Date(this.clock.now()),
    };
    const claims = await verifyWithCandidates(token, this.keysOf(rules.keys), options).catch((error) => {
      throw error instanceof OAuthError ? error : invalidJwtOf(error);
    });
    assertClaims(claims, rules, this.clock.now() / 1000);
    return claims;
  }

  private keysOf({ jwks, jwks_uri, jwks_file = '' }: KeyLocation): JWTVerifyGetKey {
    if (jwks_uri !== undefined) return this.keySet(`uri ${jwks_uri}`, () => remoteKeys(jwks_uri));
    if (!jwks) return this.keySet(`file ${jwks_file}`, () => keysInFile(this.configuration.JWKS_DIR, jwks_file));
    const keys = this.inlineKeys.get(jwks) ?? jose().createLocalJWKSet({ keys: signatureKeys(jwks.keys) as JWK[] });
    this.inlineKeys.set(jwks, keys);
    return keys;
  }

  private keySet(name: string, source: () => KeySource): JWTVerifyGetKey {
    const keySet = this.keySets.get(name) ?? new KeySet(source(), this.clock);
    this.keySets.set(name, keySet);
    return keySet.getKey;
  }
}

/** The `iss` claim of a JWT, which is not verified yet. */
export function unverifiedIssuer(token: string): unknown {
  try {
    return jose().decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}

/** Rejects a JWT by its form and header before a key is looked up, so that it cannot cause a fetch of keys. */
function assertAcceptedForm(token: string, { algorithms, types, mayBringKey = false }: JwtRules): void {
  const segments = token.split('.');
  // base64url has several texts for the same bytes; only the canonical one is accepted, so that a text cannot vary
  const isCanonical = (text: string) =>
    SEGMENT.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text;
  if (token.length > MAX_CHARACTERS || segments.length !== 3) throw invalidForm('not three parts, or too long');
  const header = headerOf(token);
  if (!algorithms.includes(String(header.alg))) throw new InvalidJwt('ERR_JOSE_ALG_NOT_ALLOWED');
  if (!segments.every(isCanonical)) throw invalidForm('not in canonical base64url');
  const rejected = mayBringKey ? [] : KEY_HEADERS.filter((name) => Object.hasOwn(header, name));
  if (rejected.length > 0 || Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64'))
    throw invalidForm(`header ${rejected.join(' ') || 'crit or b64'}`);
  const { typ = '' } = header;
  if (typeof typ !== 'string' || !types.map(mediaTypeOf).includes(mediaTypeOf(typ)))
    throw new InvalidJwt(CLAIM_REJECTED, 'typ');
}

function headerOf(token: string): Record<string, unknown> {
  try {
    return jose().decodeProtectedHeader(token);
  } catch {
    throw invalidForm('no header');
  }
}

const invalidForm = (reason: string) => new InvalidJwt('ERR_JWS_INVALID', reason);

/** The prefix `application/` is optional, and case is insignificant (RFC 7515 §4.1.9). */
function mediaTypeOf(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '');
}

async function verifyWithCandidates(token: string, getKey: JWTVerifyGetKey, options: JWTVerifyOptions) {
  const { errors, jwtVerify } = jose();
  try {
    return (await jwtVerify(token, getKey, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tried = 0;
    for await (const key of error as AsyncIterable<CryptoKey>) {
      if (++tried > MAX_TRIED_KEYS) break;
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** jose checks the claims after the signature, so the signature of a payload is valid. */
function invalidJwtOf(error: unknown): InvalidJwt {
  const { code, name, claim, payload } = error as { code?: string; name: string; claim?: string; payload?: JWTPayload };
  return new InvalidJwt(error instanceof jose().errors.JOSEError && code ? code : name, claim, payload);
}

/** What jose does not check, or with another tolerance. */
function assertClaims(claims: JWTPayload, { isOnlyAudience, maxLifetimeSeconds = Infinity }: JwtRules, now: number) {
  const { aud, iat = now, exp = now } = claims;
  const reject = (claim: string, code = CLAIM_REJECTED) => new InvalidJwt(code, claim, claims);
  if (!hasTimesInRange(claims)) throw reject('times');
  // `clockTolerance` of jose relaxes `exp` too, and jose does not check that `iat` is in the past
  if (claims.exp !== undefined && !(now < exp)) throw reject('exp', 'ERR_JWT_EXPIRED');
  if (iat > now + ISSUER_CLOCK_SKEW_SECONDS) throw reject('iat');
  if (isOnlyAudience && Array.isArray(aud) && aud.length > 1) throw reject('aud: more than one audience');
  if (exp - iat > maxLifetimeSeconds) throw reject('exp: the lifetime is too long');
}

/** The time claims of a JWT (RFC 7519 §4.1, OpenID Connect Core §2). */
const TIME_CLAIMS = ['exp', 'nbf', 'iat', 'auth_time'];
/** 2100-01-01T00:00:00Z. A higher number is in milliseconds, or is later than a database can store or compare. */
const MAX_TIME_SECONDS = 4_102_444_800;

/**
 * Whether each time claim is a number of seconds since 1970, and before the year 2100. The issuer chooses the times.
 */
function hasTimesInRange(claims: object): boolean {
  return Object.entries(claims).every(([name, value]) => !TIME_CLAIMS.includes(name) || isTimeInRange(value));
}

function isTimeInRange(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < MAX_TIME_SECONDS;
}
