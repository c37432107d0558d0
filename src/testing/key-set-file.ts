import { existsSync, writeFileSync } from 'node:fs';
import { generateKey } from '../access-token/key-set.js';

/** A key set in a file, made once for all services that share the folder. It signs since yesterday. */
export function writeKeySet(path: string): string {
  const yesterday = Math.floor(Date.now() / 1000) - 86_400;
  if (!existsSync(path)) writeFileSync(path, JSON.stringify({ keys: [generateKey(yesterday)] }), { mode: 0o600 });
  return path;
}
