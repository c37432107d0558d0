import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { isPublicJwk } from '../../public/grant.js';

const MAX_KEYS = 20;
const MIN_RSA_BITS = 2048;

/** Why something is no set of public keys that our algorithms can verify with; `undefined` when it is one. */
export function faultOfKeys(value: unknown): string | undefined {
  const keys = (value as { keys?: unknown } | undefined)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS)
    return `must be a JWK Set of 1 to ${MAX_KEYS} keys`;
  const faults = keys.map((key) => faultOfKey(key));
  const faulty = faults.findIndex((fault) => fault !== undefined);
  if (faulty >= 0) return `keys[${faulty}] ${faults[faulty]}`;
  const kids = keys.map(({ kid }) => kid);
  return new Set(kids).size < kids.length ? 'must have keys with different kid' : undefined;
}

function faultOfKey(key: unknown): string | undefined {
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
