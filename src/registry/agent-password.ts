import { randomBytes } from 'node:crypto';
import { loadWhenUsed } from '../platform/load-when-used.js';

const argon2 = () => loadWhenUsed<typeof import('@node-rs/argon2')>('@node-rs/argon2');

/** OWASP's least for argon2id: 19 MiB, 2 passes. About 20 ms, which is the point. */
export const ARGON2ID_COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** A hash that is no password's, and takes as long to compare as any: for those whom we do not know. */
export const NOBODYS_HASH = nobodysHash();

export function hashPassword(password: string): Promise<string> {
  const { Algorithm, hash } = argon2();
  return hash(password, { algorithm: Algorithm.Argon2id, ...ARGON2ID_COST });
}

export function isPasswordOf(passwordHash: string, password: string): Promise<boolean> {
  return argon2().verify(passwordHash, password);
}

/** PHC string format. */
function nobodysHash(): string {
  const { memoryCost, timeCost, parallelism } = ARGON2ID_COST;
  const [salt, hash] = [16, 32].map((bytes) => randomBytes(bytes).toString('base64').replace(/=+$/, ''));
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${hash}`;
}
