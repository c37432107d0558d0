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
