import { sha256 } from '../../platform/secret.js';
import { hashPassword, isPasswordOf } from '../agent-password.js';

export const MIN_SECRET_CHARACTERS = 32;
export const MAX_SECRET_CHARACTERS = 256;
export const MIN_PASSWORD_CHARACTERS = 8;
export const MAX_PASSWORD_CHARACTERS = 1024;

/** How secrets of one kind are hashed, and how long they are. */
export interface SecretKind {
  /** The violation of a secret of another length. */
  lengthRule: string;
  /**
   * Whether a secret is shorter than a new one may be. Release 1 accepted any length: the registry file may keep such a
   * secret while it does not change.
   */
  isShort(secret: string): boolean;
  hash(secret: string): Promise<string>;
  matches(hash: string, secret: string): Promise<boolean>;
}

/** A secret of a program. A fast hash is enough, because an attacker cannot guess it. */
export const RANDOM_SECRET: SecretKind = {
  lengthRule: `must be ${MIN_SECRET_CHARACTERS} to ${MAX_SECRET_CHARACTERS} characters`,
  isShort: (secret) => secret !== '' && secret.length < MIN_SECRET_CHARACTERS,
  hash: async (secret) => sha256(secret),
  matches: async (hash, secret) => hash === sha256(secret),
};

/** A password of a person. Its hash is slow. */
export const PASSWORD: SecretKind = {
  lengthRule: `must be ${MIN_PASSWORD_CHARACTERS} to ${MAX_PASSWORD_CHARACTERS} characters`,
  isShort: (password) => [...password].length < MIN_PASSWORD_CHARACTERS,
  hash: hashPassword,
  matches: (hash, password) => isPasswordOf(hash, password),
};
