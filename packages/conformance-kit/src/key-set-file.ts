import { existsSync, writeFileSync } from 'node:fs';
import { generateKey } from '@customer-authorization/service/testing-host';

/**
 * Writes a key set to a file, once for all services that share the folder. Its key has been signing since yesterday.
 * The time comes from `Date.now`, because the file is written before a service with its `Clock` starts.
 */
export function writeKeySet(path: string): string {
  const yesterday = Math.floor(Date.now() / 1000) - 86_400;
  if (!existsSync(path)) writeFileSync(path, JSON.stringify({ keys: [generateKey(yesterday)] }), { mode: 0o600 });
  return path;
}
