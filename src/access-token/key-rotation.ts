import { generateKey, type PrivateJwk, type PrivateKeySet } from './key-set.js';

/** From when to when a key is good, in seconds since 1970. */
export interface KeyLife {
  nbf: number;
  exp?: number;
}

export type KeyState = 'upcoming' | 'signing' | 'verifying' | 'expired';

/**
 * Seconds from a rotation until the new key signs: five minutes that verifiers keep our JWKS, a few in which a cluster
 * brings a changed secret to every pod, and as many again.
 */
const LEAD_SECONDS = 900;
/** Seconds that another process may go on signing with the old key, since its clock is behind. */
const CLOCK_SKEW_SECONDS = 60;

/** What a key is for now. Of those that may sign, the newest does. */
export function stateOf(key: KeyLife, all: KeyLife[], now: number): KeyState {
  if (!isAlive(key, now)) return 'expired';
  if (key.nbf > now) return 'upcoming';
  const newest = Math.max(...all.filter((each) => each.nbf <= now && isAlive(each, now)).map(({ nbf }) => nbf));
  return key.nbf === newest ? 'signing' : 'verifying';
}

/**
 * A set with one more key, which signs in a quarter of an hour; those it takes the place of expire when the last token
 * they have signed has. Keys that have expired are gone.
 *
 * @param longestTokenLife seconds
 * @throws Error when a rotation is under way
 */
export function rotated({ keys }: PrivateKeySet, now: number, longestTokenLife: number): PrivateKeySet {
  if (keys.some(({ nbf }) => nbf > now)) throw new Error('a key that will sign is there already: nothing was changed');
  const begins = now + LEAD_SECONDS;
  const ends = begins + longestTokenLife + CLOCK_SKEW_SECONDS;
  const before = keys
    .filter((key) => isAlive(key, now))
    .map((key) => ({ ...key, exp: Math.min(key.exp ?? ends, ends) }));
  return { keys: [generateKey(begins), ...before] };
}

/**
 * A set without a key: tokens that it signed are worth nothing from then on.
 *
 * @throws Error when there is no such key, or no other that may sign now
 */
export function withoutKey({ keys }: PrivateKeySet, kid: string, now: number): PrivateKeySet {
  const rest = keys.filter((key) => key.kid !== kid);
  if (rest.length === keys.length) throw new Error('there is no key of this kid');
  if (!rest.some((key) => key.nbf <= now && isAlive(key, now)))
    throw new Error('no other key may sign now: rotate first, and retire this one when the new one signs');
  if (rest.some(({ exp }) => exp === undefined)) return { keys: rest };
  // it was to take over from the newest of these, which goes on instead
  const newest = Math.max(...rest.map(({ nbf }) => nbf));
  return { keys: rest.map((key) => (key.nbf === newest ? withoutEnd(key) : key)) };
}

function withoutEnd({ exp: _exp, ...key }: PrivateJwk): PrivateJwk {
  return key;
}

function isAlive({ exp = Infinity }: KeyLife, now: number): boolean {
  return now < exp;
}
