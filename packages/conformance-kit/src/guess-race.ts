import { randomInt } from 'node:crypto';
import type { GuessableParameter } from './grant-kit.js';
import type { GuessValues } from './guess-values.js';

/** In a race the right value is one of more than ten times as many values as the limit admits. */
const WRONG_VALUE_RATIO = 10;
const MIN_WRONG_COUNT = 20;
/** With a higher limit the race would have more requests than a service answers at the same time. */
const MAX_LIMIT_COUNT = 20;
/** A grant that counts each guess before it compares the value wins so many races less than once in a million runs. */
const ROUND_COUNT = 10;
const MAX_LOST_COUNT = 2;

/** What a race sends: the wrong values, and the right one at a random place. */
export interface GuessRace {
  values: string[];
  /** The index of the right value. */
  at: number;
}

/**
 * Whether the right value wins most races. It wins one by chance if it is among the first `limit` values that are
 * counted. It wins most if all values are compared before the wrong ones are counted.
 *
 * @param wins does a race with a new proof, and returns whether the right value wins it
 */
export async function winsMostRaces({ limit }: GuessableParameter, wins: () => Promise<boolean>): Promise<boolean> {
  if (limit > MAX_LIMIT_COUNT) return false;
  let lostCount = 0;
  for (let round = 0; round < ROUND_COUNT && lostCount <= MAX_LOST_COUNT; round++) if (!(await wins())) lostCount++;
  return lostCount <= MAX_LOST_COUNT;
}

/** Returns `undefined` if there are too few wrong values for a race. */
export function guessRace({ limit }: GuessableParameter, wrong: GuessValues, right: string): GuessRace | undefined {
  const count = Math.max(MIN_WRONG_COUNT, limit * WRONG_VALUE_RATIO);
  const values = [...new Set(wrong.takeUpTo(count))].filter((value) => value !== right);
  if (values.length < count) return undefined;
  const at = randomInt(count + 1);
  return { values: values.toSpliced(at, 0, right), at };
}
