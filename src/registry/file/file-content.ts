import { loadWhenUsed } from '../../platform/load-when-used.js';
import { ARGON2ID_COST } from '../agent-password.js';

/** The identity of a registry file. */
export interface FileContent {
  /** The hash of the text and of the secret files that it names. */
  contentHash: string;
  textHash: string;
  /** The top-level `revision`. */
  revision: number | undefined;
}

/** A constant salt, because files are looked up by their hash. */
const SALT = Buffer.from('customer-authorization registry');

export async function contentOf(text: string, withSecrets: unknown, revision: unknown): Promise<FileContent> {
  const texts = [JSON.stringify([text, withSecrets]), text];
  const [contentHash = '', textHash = ''] = await Promise.all(texts.map(slowHash));
  return { contentHash, textHash, revision: typeof revision === 'number' ? revision : undefined };
}

/** As slow as the hash of a password: from a fast hash of a file, an attacker could guess the passwords in it. */
async function slowHash(text: string): Promise<string> {
  const { Algorithm, hashRaw } = loadWhenUsed<typeof import('@node-rs/argon2')>('@node-rs/argon2');
  const hash = await hashRaw(text, { algorithm: Algorithm.Argon2id, ...ARGON2ID_COST, salt: SALT, outputLen: 32 });
  return hash.toString('hex');
}
