import { generateKey, type PrivateJwk, type PrivateKeySet } from './key-set.js';

export interface KeyValidity {
  nbf: number;
  exp?: number;
}

export type KeyState = 'upcoming' | 'signing' | 'verifying' | 'expired';

/** Verifiers cache the JWKS for 5 minutes, a cluster updates its pods within a few more, and the rest is a reserve. */
const LEAD_SECONDS = 900;
/** How long a process whose clock is behind may still sign with the old key. */
const LATE_SIGNING_SECONDS = 60;

/** The state of a key. Among the keys that may sign, the newest signs. */
export function stateOf(key: KeyValidity, all: KeyValidity[], now: number): KeyState {
  if (!isAlive(key, now)) return 'expired';
  if (key.nbf > now) return 'upcoming';
  const newest = Math.max(...all.filter((each) => each.nbf <= now && isAlive(each, now)).map(({ nbf }) => nbf));
  return key.nbf === newest ? 'signing' : 'verifying';
}

/** Each earlier key expires together with the last token that it can sign. @throws Error if a rotation is under way */
export function rotated({ keys }: PrivateKeySet, now: number, maxTokenLifetimeSeconds: number): PrivateKeySet {
  if (keys.some(({ nbf }) => nbf > now)) throw new Error('the set already has an upcoming key');
  const signsFrom = now + LEAD_SECONDS;
  const expiresAt = signsFrom + maxTokenLifetimeSeconds + LATE_SIGNING_SECONDS;
  const earlierKeys = keys
    .filter((key) => isAlive(key, now))
    .map((key) => ({ ...key, exp: Math.min(key.exp ?? expiresAt, expiresAt) }));
  return { keys: [generateKey(signsFrom), ...earlierKeys] };
}

/** @throws Error if the key does not exist, or if no other key may sign now */
export function withoutKey({ keys }: PrivateKeySet, kid: string, now: number): PrivateKeySet {
  const rest = keys.filter((key) => key.kid !== kid);
  if (rest.length === keys.length) throw new Error('KID: no such key');
  if (!rest.some((key) => key.nbf <= now && isAlive(key, now)))
    throw new Error('no other key may sign now; run keys rotate first, and retire this key when the new key signs');
  if (rest.some(({ exp }) => exp === undefined)) return { keys: rest };
  // The removed key was the successor of the newest remaining key, so that key must not expire any more.
  const newest = Math.max(...rest.map(({ nbf }) => nbf));
  return { keys: rest.map((key) => (key.nbf === newest ? withoutEnd(key) : key)) };
}

function withoutEnd({ exp: _exp, ...key }: PrivateJwk): PrivateJwk {
  return key;
}

function isAlive({ exp = Infinity }: KeyValidity, now: number): boolean {
  return now < exp;
}
