import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { withoutByteOrderMark } from '../platform/validation/text-rules.js';
import { ApiEnum, ApiString } from '../platform/validation/validation.js';

/** The public part of a key, as the JWKS publishes it. */
export class PublicJwk {
  @ApiEnum(['EC'], 'The type of the key: elliptic curve.')
  kty!: 'EC';

  @ApiEnum(['P-256'], 'The curve of the key.')
  crv!: 'P-256';

  @ApiString('The x coordinate of the public key, in base64url.', 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4')
  x!: string;

  @ApiString('The y coordinate of the public key, in base64url.', '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM')
  y!: string;

  @ApiString('The id of the key. The header of each token names it.', 'EXAMPLE-KEY')
  kid!: string;

  @ApiEnum(['ES256'], 'The algorithm of the signatures.')
  alg!: 'ES256';

  @ApiEnum(['sig'], 'The key verifies signatures.')
  use!: 'sig';
}

/** One private key of the JWK Set in SIGNING_KEYS_FILE (RFC 7517). */
export interface PrivateJwk extends PublicJwk {
  d: string;
  /** Seconds since 1970. From this time on the key signs; it is published and verifies before. */
  nbf: number;
  /** Seconds since 1970. From this time on the key is neither published nor verifies. */
  exp?: number;
}

export interface PrivateKeySet {
  keys: PrivateJwk[];
}

interface KeyPair {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

export interface SigningKey extends KeyPair {
  publicJwk: PublicJwk;
  /** The first segment of every token that the key signs: the JOSE header of an access token (RFC 9068 §2.1). */
  header: string;
  nbf: number;
  exp: number;
}

/** Generates a private key that signs from `nbf` (seconds since 1970) on. Its `kid` is its thumbprint (RFC 7638). */
export function generateKey(nbf: number): PrivateJwk {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y, d } = privateKey.export({ format: 'jwk' }) as Record<'x' | 'y' | 'd', string>;
  return { kty: 'EC', crv: 'P-256', x, y, d, kid: thumbprint(x, y), alg: 'ES256', use: 'sig', nbf };
}

/** So a process whose clock is behind can sign with a set that is new. */
const MAX_CLOCK_DIFFERENCE_SECONDS = 300;

/** A set with one key, which signs at once. */
export function newKeySet(now: number): PrivateKeySet {
  return { keys: [generateKey(now - MAX_CLOCK_DIFFERENCE_SECONDS)] };
}

/** @throws Error that names the invalid key and the rule, without a value */
export function readKeySet(text: string): SigningKey[] {
  const { keys } = parse(text);
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('must be a JWK Set with at least one key');
  const read = keys.map(readKey);
  if (new Set(keys.map(({ kid }) => kid)).size < keys.length) throw new Error('two keys have the same kid');
  return read;
}

function parse(text: string): Partial<PrivateKeySet> {
  try {
    return JSON.parse(withoutByteOrderMark(text)) ?? {};
  } catch {
    throw new Error('must be JSON');
  }
}

function readKey(jwk: Partial<PrivateJwk>, index: number): SigningKey {
  const violation = (rule: string) => new Error(`keys[${index}]: ${rule}`);
  const { kty, crv, x, y, d, kid, alg = 'ES256', use = 'sig', nbf = 0, exp = Infinity } = jwk ?? {};
  if (kty !== 'EC' || crv !== 'P-256' || alg !== 'ES256') throw violation('must be an EC key on P-256 for ES256');
  if (typeof x !== 'string' || typeof y !== 'string') throw violation('x and y are missing');
  if (typeof d !== 'string') throw violation('is not private: d is missing');
  if (typeof kid !== 'string' || !/^[A-Za-z0-9_-]{1,128}$/.test(kid))
    throw violation('kid must be letters, digits, _ or -');
  if (!isTime(nbf) || !(exp === Infinity || isTime(exp))) throw violation('nbf and exp must be seconds since 1970');
  if (exp <= nbf) throw violation('exp must be after nbf');
  if (use !== 'sig') throw violation('use must be sig');

  const publicJwk = { kty, crv, x, y, kid, alg, use } as const;
  const pair = keyPair({ kty, crv, x, y, d }, violation);
  // Node.js accepts other encodings of the coordinates, but verifiers of the JWKS may not.
  const canonical = pair.publicKey.export({ format: 'jwk' });
  if (x !== canonical.x || y !== canonical.y) throw violation('x and y must be 43 characters of canonical base64url');
  const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid })).toString('base64url');
  return { ...pair, publicJwk, header, nbf, exp };
}

/** Whether a value is whole seconds since 1970. The upper bound rejects milliseconds. */
const isTime = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) < 1e11;

function keyPair(jwk: JsonWebKey, violation: (rule: string) => Error): KeyPair {
  let pair: KeyPair;
  try {
    const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
    pair = { privateKey, publicKey: createPublicKey(privateKey) };
  } catch {
    throw violation('is not a point on the curve');
  }
  if (!isMatchingPair(pair)) throw violation('d does not belong to x and y');
  return pair;
}

/** Node.js accepts a private and a public part that belong to different keys. Their signatures would be invalid. */
function isMatchingPair({ privateKey, publicKey }: KeyPair): boolean {
  const probe = Buffer.from('probe');
  try {
    return verify('sha256', probe, publicKey, sign('sha256', probe, privateKey));
  } catch {
    return false;
  }
}

function thumbprint(x: string, y: string): string {
  return createHash('sha256')
    .update(JSON.stringify({ crv: 'P-256', kty: 'EC', x, y }))
    .digest('base64url');
}
