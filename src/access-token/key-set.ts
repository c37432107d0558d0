import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';

/** One private key of the JWK Set in SIGNING_KEYS_FILE (RFC 7517). */
interface PrivateJwk {
  kty: 'EC';
  crv: 'P-256';
  x: string;
  y: string;
  d: string;
  kid: string;
  alg: 'ES256';
  use: 'sig';
  /** Seconds since 1970 from which on it signs; it is published and verifies before. */
  nbf: number;
  /** Seconds since 1970 from which on it is neither published nor verifies. */
  exp?: number;
}

export interface PrivateKeySet {
  keys: PrivateJwk[];
}

/** The public half of a key, as the JWKS shows it. */
export type PublicJwk = Omit<PrivateJwk, 'd' | 'nbf' | 'exp'>;

/** A key of the set, ready for use. */
export interface SigningKey {
  privateKey: KeyObject;
  publicKey: KeyObject;
  publicJwk: PublicJwk;
  /** The first segment of every token it signs: the JOSE header of an RFC 9068 access token. */
  header: string;
  nbf: number;
  exp: number;
}

/** A new private key, signing from `nbf` (seconds since 1970) on. Its `kid` is its thumbprint (RFC 7638). */
export function generateKey(nbf: number): PrivateJwk {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y, d } = privateKey.export({ format: 'jwk' }) as Record<'x' | 'y' | 'd', string>;
  return { kty: 'EC', crv: 'P-256', x, y, d, kid: thumbprint(x, y), alg: 'ES256', use: 'sig', nbf };
}

/**
 * Reads a private JWK Set.
 *
 * @throws Error that tells which key breaks which rule, without a value
 */
export function readKeySet(text: string): SigningKey[] {
  const { keys } = parse(text);
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('must be a JWK Set with at least one key');
  const read = keys.map(readKey);
  if (new Set(keys.map(({ kid }) => kid)).size < keys.length) throw new Error('two keys have the same kid');
  return read;
}

function parse(text: string): Partial<PrivateKeySet> {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    throw new Error('must be JSON');
  }
}

function readKey(jwk: Partial<PrivateJwk>, index: number): SigningKey {
  const fault = (rule: string) => new Error(`keys[${index}]: ${rule}`);
  const { kty, crv, x, y, d, kid, alg = 'ES256', nbf = 0, exp = Infinity } = jwk ?? {};
  if (kty !== 'EC' || crv !== 'P-256' || alg !== 'ES256') throw fault('must be an EC key on P-256 for ES256');
  if (typeof x !== 'string' || typeof y !== 'string') throw fault('x and y are missing');
  if (typeof d !== 'string') throw fault('is not private: d is missing');
  if (typeof kid !== 'string' || !/^[A-Za-z0-9_-]{1,128}$/.test(kid))
    throw fault('kid must be letters, digits, _ or -');
  if (typeof nbf !== 'number' || typeof exp !== 'number') throw fault('nbf and exp must be seconds since 1970');
  try {
    const privateKey = createPrivateKey({ key: { kty, crv, x, y, d }, format: 'jwk' });
    const publicKey = createPublicKey(privateKey);
    return {
      privateKey,
      publicKey,
      publicJwk: { kty, crv, x, y, kid, alg, use: 'sig' },
      header: headerOf(kid),
      nbf,
      exp,
    };
  } catch {
    throw fault('is not a point on the curve');
  }
}

function headerOf(kid: string): string {
  return Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid })).toString('base64url');
}

function thumbprint(x: string, y: string): string {
  return createHash('sha256')
    .update(JSON.stringify({ crv: 'P-256', kty: 'EC', x, y }))
    .digest('base64url');
}
