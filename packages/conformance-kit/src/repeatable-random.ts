import { about } from './cases.js';
import { SharedPatch } from './shared-patch.js';
import type { Parameters } from './token-request.js';

/** Short values may be equal by chance, but not so many in a row. */
const SAMPLE_COUNT = 10;

/**
 * The parameters whose values repeat when `Math.random()` repeats its numbers.
 *
 * @param next returns the parameters of a new request
 */
export async function predictedParameters(names: string[], next: () => Promise<Parameters>): Promise<string[]> {
  const sample = () =>
    withRepeatableRandom(async () => {
      const all: Parameters[] = [];
      while (all.length < SAMPLE_COUNT) all.push(await next());
      return all;
    });
  const [one, other] = [await sample(), await sample()];
  const valuesOf = (all: Parameters[], name: string) => all.map((each) => each[name]);
  const varies = (name: string) => new Set(valuesOf(one, name)).size > 1;
  return names.filter((name) => varies(name) && `${valuesOf(one, name)}` === `${valuesOf(other, name)}`);
}

/** Does work while `Math.random()` returns the same numbers as in the previous call of this function. */
async function withRepeatableRandom<Result>(work: () => Promise<Result>): Promise<Result> {
  let state = 1;
  const patch = new SharedPatch(Math, 'random', () => () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  });
  const release = patch.acquire();
  try {
    return await about('while Math.random() repeats its numbers', work);
  } finally {
    release();
  }
}
