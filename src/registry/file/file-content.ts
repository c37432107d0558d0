import { loadWhenUsed } from '../../platform/load-when-used.js';
import { ARGON2ID_COST } from '../agent-password.js';

/** What tells one registry file from another. */
export interface FileContent {
  /** Of the text and of the secret files that it names. */
  contentHash: string;
  textHash: string;
  /** The top-level `revision`. */
  revision: number | undefined;
}

/** One salt for all, since the hash is what a file is looked up by. */
const SALT = Buffer.from('customer-authorization registry');

export async function contentOf(text: string, withSecrets: unknown, revision: unknown): Promise<FileContent> {
  const texts = [JSON.stringify([text, withSecrets]), text];
  const [contentHash = '', textHash = ''] = await Promise.all(texts.map(slowHash));
  return { contentHash, textHash, revision: typeof revision === 'number' ? revision : undefined };
}

/** As slow as the hash of a password, because a file may hold passwords that could be guessed from a fast hash of it. */
async function slowHash(text: string): Promise<string> {
  const { Algorithm, hashRaw } = loadWhenUsed<typeof import('@node-rs/argon2')>('@node-rs/argon2');
  const hash = await hashRaw(text, { algorithm: Algorithm.Argon2id, ...ARGON2ID_COST, salt: SALT, outputLen: 32 });
  return hash.toString('hex');
}
