import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { isPublicJwk } from '../../public/grant.js';

const MAX_KEYS = 20;
const MIN_RSA_BITS = 2048;

/**
 * The violation of a value that is no set of public keys for the supported algorithms; `undefined` if there is none.
 */
export function keySetViolation(value: unknown): string | undefined {
  const keys = (value as { keys?: unknown } | undefined)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS)
    return `must be a JWK Set of 1 to ${MAX_KEYS} keys`;
  const violations = keys.map((key) => keyViolation(key));
  const firstInvalid = violations.findIndex((violation) => violation !== undefined);
  if (firstInvalid >= 0) return `keys[${firstInvalid}] ${violations[firstInvalid]}`;
  const kids = keys.map(({ kid }) => kid);
  return new Set(kids).size < kids.length ? 'must have keys with different kid' : undefined;
}

function keyViolation(key: unknown): string | undefined {
  if (typeof key !== 'object' || key === null) return 'must be a JWK';
  if (!isPublicJwk(key)) return 'must be a public key, without its private part';
  const { kid, use } = key as { kid?: unknown; use?: unknown };
  if (typeof kid !== 'string' || kid === '') return 'must have a kid';
  if (use !== undefined && use !== 'sig') return 'must be for signatures';
  return isUsable(key) ? undefined : 'must be EC P-256 or P-384, RSA of 2048 bits or more, or Ed25519';
}

function isUsable(key: object): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails ?? {};
    if (asymmetricKeyType === 'ec') return ['prime256v1', 'secp384r1'].includes(namedCurve);
    return asymmetricKeyType === 'ed25519' || (asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS);
  } catch {
    return false;
  }
}
