import { Algorithm, hash, verify } from '@node-rs/argon2';

/** OWASP's least for argon2id: 19 MiB, 2 passes. About 20 ms, which is the point. */
const COST = { algorithm: Algorithm.Argon2id, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

export function hashPassword(password: string): Promise<string> {
  return hash(password, COST);
}

export function isPasswordOf(passwordHash: string, password: string): Promise<boolean> {
  return verify(passwordHash, password);
}
