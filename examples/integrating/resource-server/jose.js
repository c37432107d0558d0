import { createRemoteJWKSet, jwtVerify } from 'jose';

const ISSUER = process.env.AUTH_URL ?? 'http://localhost:3000';
const JWKS_URL = new URL(process.env.JWKS_URL ?? `${ISSUER}/.well-known/jwks.json`);
const REFRESH_INTERVAL_MS = 300_000;
const CODES_OF_INVALID_TOKENS = /^ERR_(JWT_|JWS_|JWKS_NO_MATCHING_KEY|JOSE_ALG_NOT_ALLOWED|JOSE_NOT_SUPPORTED)/;

const keys = createRemoteJWKSet(JWKS_URL, { cacheMaxAge: Infinity }); // otherwise a failed fetch rejects every token
const rules = { issuer: ISSUER, audience: 'customer-api', typ: 'at+jwt', algorithms: ['ES256'] };
setInterval(() => keys.reload().catch(() => {}), REFRESH_INTERVAL_MS).unref(); // if it fails, the known keys stay

/** Resolves to the claims of a customer token; rejects if the token is not valid. */
export async function verify(token) {
  const jws = token.slice(token.indexOf(':') + 1); // without the region prefix
  const { payload } = await jwtVerify(jws, keys, { ...rules, requiredClaims: ['sub', 'exp', 'jti'] });
  return payload;
}

/** The status of the response to an error of `verify`: 503 if the keys could not be fetched. */
export function statusOf(error) {
  return CODES_OF_INVALID_TOKENS.test(error.code) ? 401 : 503;
}
