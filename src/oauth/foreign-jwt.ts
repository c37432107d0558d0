import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import type { Clock } from '../platform/clock.js';
import { loadWhenUsed } from '../platform/load-when-used.js';

export const jose = () => loadWhenUsed<typeof import('jose')>('jose');

/** `iat` and `nbf` may be this far in the future, because the issuer's clock may be ahead. A passed `exp` is passed. */
export const ISSUER_CLOCK_SKEW_SECONDS = 30;

/** What a JWT must fulfil besides its signature and its times. */
export type JwtRules = Omit<JWTVerifyOptions, 'currentDate' | 'clockTolerance' | 'maxTokenAge'>;

/**
 * Verifies the signature and the times of a JWT of another issuer, and the rules. If several keys match its header, one
 * of them must verify it: a set may have a key twice, two keys with one `kid`, or keys without a `kid`.
 *
 * @throws an error of jose; what `getKey` throws
 */
export async function verifyForeignJwt(
  token: string,
  getKey: JWTVerifyGetKey,
  rules: JwtRules,
  clock: Clock,
): Promise<JWTPayload> {
  const { errors } = jose();
  const payload = await verifyWithCandidates(token, getKey, {
    ...rules,
    currentDate: new Date(clock.now()),
    clockTolerance: ISSUER_CLOCK_SKEW_SECONDS,
  });
  const now = clock.now() / 1000;
  if (!hasTimesInRange(payload))
    throw new errors.JWTClaimValidationFailed('a time is not between 1970 and 2100', payload, 'times');
  // `clockTolerance` of jose relaxes `exp` too, and jose does not check that `iat` is in the past
  if (payload.exp !== undefined && !(now < payload.exp)) throw new errors.JWTExpired('expired', payload, 'exp');
  if (payload.iat !== undefined && payload.iat > now + ISSUER_CLOCK_SKEW_SECONDS)
    throw new errors.JWTClaimValidationFailed('iat is in the future', payload, 'iat');
  return payload;
}

async function verifyWithCandidates(token: string, getKey: JWTVerifyGetKey, rules: JWTVerifyOptions) {
  const { errors, jwtVerify } = jose();
  try {
    return (await jwtVerify(token, getKey, rules)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, rules)).payload;
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** The time claims of a JWT (RFC 7519 §4.1, OpenID Connect Core §2). */
const TIME_CLAIMS = ['exp', 'nbf', 'iat', 'auth_time'];
/** 2100-01-01T00:00:00Z. A higher number is in milliseconds, or is later than a database can store or compare. */
const MAX_TIME_SECONDS = 4_102_444_800;

/**
 * Whether each time claim of a JWT of another issuer is a number of seconds since 1970, and before the year 2100. The
 * issuer chooses the times, so check them before you compare or store one.
 */
export function hasTimesInRange(claims: object): boolean {
  return Object.entries(claims).every(([name, value]) => !TIME_CLAIMS.includes(name) || isTimeInRange(value));
}

function isTimeInRange(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < MAX_TIME_SECONDS;
}
