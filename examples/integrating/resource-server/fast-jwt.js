import { createPublicKey } from 'node:crypto';
import { createVerifier } from 'fast-jwt';

const ISSUER = process.env.AUTH_URL ?? 'http://localhost:3000';
const JWKS_URL = process.env.JWKS_URL ?? `${ISSUER}/.well-known/jwks.json`;
const REFRESH_INTERVAL_MS = 300_000;
const TIMEOUT_MS = 5_000;

let keys = new Map();

async function fetchKeys() {
  const response = await fetch(JWKS_URL, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`the keys cannot be fetched: ${response.status}`);
  const { keys: jwks } = await response.json();
  keys = new Map(jwks.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
}
setInterval(() => fetchKeys().catch(() => {}), REFRESH_INTERVAL_MS).unref(); // if it fails, the known keys stay

/** Resolves to the public key that a token names. */
async function keyOf({ header }) {
  if (keys.size === 0) await fetchKeys();
  return keys.get(header.kid)?.export({ type: 'spki', format: 'pem' });
}

const verifyJws = createVerifier({
  key: keyOf, // no cache of tokens: it would accept a token after its key was removed
  algorithms: ['ES256'],
  checkTyp: 'at+jwt',
  allowedIss: ISSUER,
  allowedAud: 'customer-api',
  requiredClaims: ['sub', 'exp', 'jti'],
});

/** Resolves to the claims of a customer token; rejects if the token is not valid. */
export function verify(token) {
  return verifyJws(token.slice(token.indexOf(':') + 1)); // without the region prefix
}

/** The status of the response to an error of `verify`: 503 if the keys could not be fetched. */
export function statusOf(error) {
  return error.code === 'FAST_JWT_KEY_FETCHING_ERROR' && keys.size === 0 ? 503 : 401;
}
