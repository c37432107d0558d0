import { existsSync, linkSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Clock } from '../platform/clock.js';
import { generateKey } from './key-set.js';

/** Returns the path of the key file that SQLite uses by default. The first start generates the file. */
export function generatedKeyFile(folder: string, clock: Clock): string {
  const path = join(folder, 'signing-keys.json');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // `linkSync` makes the draft visible in one step. A full disk leaves no partial file, and parallel starts share one.
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ keys: [generateKey(clock.seconds())] }, undefined, 2)}\n`, { mode: 0o600 });
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
  unlinkSync(draft);
  new Logger('SigningKeys').log(`generated a signing key: ${path}`);
  return path;
}
