import { loadWhenUsed } from '../platform/load-when-used.js';

const argon2 = () => loadWhenUsed<typeof import('@node-rs/argon2')>('@node-rs/argon2');

/** OWASP's least for argon2id: 19 MiB, 2 passes. About 20 ms, which is the point. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export function hashPassword(password: string): Promise<string> {
  const { Algorithm, hash } = argon2();
  return hash(password, { algorithm: Algorithm.Argon2id, ...COST });
}

export function isPasswordOf(passwordHash: string, password: string): Promise<boolean> {
  return argon2().verify(passwordHash, password);
}
