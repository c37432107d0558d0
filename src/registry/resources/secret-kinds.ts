import { sha256 } from '../../platform/secret.js';
import { hashPassword, isPasswordOf } from '../agent-password.js';

/** How secrets of one kind are hashed. */
export interface SecretKind {
  hash(secret: string): Promise<string>;
  matches(hash: string, secret: string): Promise<boolean>;
}

/** A secret of a program. A fast hash is enough, because an attacker cannot guess it. */
export const RANDOM_SECRET: SecretKind = {
  hash: async (secret) => sha256(secret),
  matches: async (hash, secret) => hash === sha256(secret),
};

/** A password of a person. Its hash is slow. */
export const PASSWORD: SecretKind = {
  hash: hashPassword,
  matches: (hash, password) => isPasswordOf(hash, password),
};
