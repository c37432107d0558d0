import { about } from './rule.js';
import { SharedPatch } from './shared-patch.js';

/** Does work while `Math.random()` returns the same numbers as in the previous call of this function. */
export async function withRepeatableRandom<Result>(work: () => Promise<Result>): Promise<Result> {
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
