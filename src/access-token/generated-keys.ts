import { existsSync, linkSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Clock } from '../platform/clock.js';
import { generateKey } from './key-set.js';

/** The path of the keys of the embedded database, which a first start makes. */
export function generatedKeys(folder: string, clock: Clock): string {
  const path = join(folder, 'signing-keys.json');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // beside it first: a full disk must not leave half a file, nor two first starts two keys
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
