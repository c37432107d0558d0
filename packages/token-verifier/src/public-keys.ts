import { importJWK } from 'jose';
import { MalformedResponseError } from './fetch-json.js';

type CryptoKey = Exclude<Awaited<ReturnType<typeof importJWK>>, Uint8Array>;

/** A key that verifies tokens. */
export interface PublicKey {
  readonly x: string;
  readonly y: string;
  readonly key: CryptoKey;
}

/** Keys by `kid`. */
export type PublicKeys = ReadonlyMap<string, PublicKey>;

const MAX_KEYS = 100;

/**
 * Imports the ES256 keys of a JWK Set (RFC 7517). Other keys are left out. A key that is known already keeps its
 * object, which the cache of verified tokens compares.
 *
 * @throws MalformedResponseError if the set has no such key
 */
export async function importKeys(keySet: unknown, known: PublicKeys): Promise<PublicKeys> {
  const { keys: jwks } = (keySet ?? {}) as { keys?: unknown };
  if (!Array.isArray(jwks)) throw new MalformedResponseError('the response is not a JWK Set');
  const keys = new Map<string, PublicKey>();
  for (const jwk of jwks.slice(0, MAX_KEYS)) {
    const { kid, x, y } = (jwk ?? {}) as Record<string, unknown>;
    if (!isES256(jwk) || typeof kid !== 'string' || typeof x !== 'string' || typeof y !== 'string') continue;
    const same = known.get(kid);
    const key = same?.x === x && same.y === y ? same.key : await importKey(x, y);
    if (key) keys.set(kid, { x, y, key });
  }
  if (keys.size === 0) throw new MalformedResponseError('the JWK Set has no key for ES256');
  return keys;
}

function isES256(jwk: Record<string, unknown>): boolean {
  const { kty, crv, alg = 'ES256', use = 'sig' } = jwk ?? {};
  return kty === 'EC' && crv === 'P-256' && alg === 'ES256' && use === 'sig';
}

/** Resolves to `undefined` for a key that is not on the curve. */
async function importKey(x: string, y: string): Promise<CryptoKey | undefined> {
  try {
    return (await importJWK({ kty: 'EC', crv: 'P-256', x, y }, 'ES256')) as CryptoKey;
  } catch {
    return undefined;
  }
}
