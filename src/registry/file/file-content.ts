import { slowHash } from '../agent-password.js';
import type { RegistrySource } from './registry-source.js';

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

/**
 * The hashes are as slow as that of a password: from a fast hash of a file, an attacker could guess the passwords in
 * it.
 */
export async function contentOf({ text, secrets }: RegistrySource, revision?: unknown): Promise<FileContent> {
  const [contentHash, textHash] = await Promise.all([
    slowHash(JSON.stringify([text, secrets]), SALT),
    hashOfText(text),
  ]);
  return { contentHash, textHash, revision: typeof revision === 'number' ? revision : undefined };
}

export function hashOfText(text: string): Promise<string> {
  return slowHash(text, SALT);
}
