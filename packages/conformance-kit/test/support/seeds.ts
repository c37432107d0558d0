import { randomInt } from 'node:crypto';

const { FUZZ_SEED } = process.env;

/** Seeds of random tests. `FUZZ_SEED=…` repeats a failure. */
export function seedsOf(count: number): number[] {
  return FUZZ_SEED ? [Number(FUZZ_SEED)] : Array.from({ length: count }, () => randomInt(1e9));
}
