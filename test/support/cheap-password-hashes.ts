import { createRequire } from 'node:module';
import { afterAll, beforeAll } from 'vitest';

/** The module that `registry/agent-password.ts` loads. */
const argon2: typeof import('@node-rs/argon2') = createRequire(import.meta.url)('@node-rs/argon2');
const original = { ...argon2 };
/** The lowest cost of argon2. At the cost of production, the hashes would take half the time of the tests. */
const LOWEST_COST = { memoryCost: 8, timeCost: 1 };

/** Lowers the cost of new password hashes in this process. */
export function lowerPasswordHashCost(): void {
  Object.assign(argon2, {
    hash: ((password, options, abort) =>
      original.hash(password, { ...options, ...LOWEST_COST }, abort)) satisfies typeof argon2.hash,
    hashRaw: ((password, options, abort) =>
      original.hashRaw(password, { ...options, ...LOWEST_COST }, abort)) satisfies typeof argon2.hashRaw,
  });
}

/** New password hashes have the cost of production in all tests of a file or of a `describe`. */
export function usePasswordHashCostOfProduction(): void {
  beforeAll(() => void Object.assign(argon2, original));
  afterAll(lowerPasswordHashCost);
}
