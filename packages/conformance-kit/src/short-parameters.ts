import { estimatedBits } from './text-guesses.js';
import type { Parameters } from './token-request.js';

/** A coarse estimate is enough to distinguish codes for humans from random ids. RFC 6749 §10.10 requires 128 bits. */
const MIN_UNGUESSABLE_BITS = 100;

export const NO_SHORT_PARAMETER =
  'has no parameter that is short enough to guess, because the test does not declare `guessable`';

/**
 * Checks each parameter alone: a long handle does not protect a short code, because the caller created the handle.
 *
 * @param samples several requests, because a random text may have no capital letter by chance
 * @param names the parameters whose values differ between requests
 * @throws Error that says what to declare
 */
export function assertNoShortParameter(samples: Parameters[], names: string[], solution: string): void {
  const bitsOf = (name: string) => Math.max(...samples.map((each) => estimatedBits(`${each[name]}`)));
  const short = names.filter((name) => bitsOf(name) < MIN_UNGUESSABLE_BITS);
  if (short.length === 0) return;
  const bits = Math.round(Math.max(...short.map(bitsOf)));
  const declaration = `declare guessable: { parameter: '${short.at(-1)}', limit: … } in the test, or guessable: false`;
  throw new Error(`${short}: at most ${bits} bits; ${solution}; then ${declaration} if guessing is harmless`);
}
