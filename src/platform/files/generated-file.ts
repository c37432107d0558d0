import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Logger } from '@nestjs/common';

/**
 * Creates a secret file at the first start, unless it exists. `linkSync` makes the draft visible in one step: a full
 * disk leaves no partial file, and parallel starts share one.
 *
 * @param what for the log, such as `a signing key`
 * @returns the path
 */
export function generatedFile(path: string, what: string, content: () => string): string {
  if (existsSync(path)) return path;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, content(), { mode: 0o600, flush: true });
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  new Logger('GeneratedFile').log(`generated ${what}: ${path}`);
  return path;
}
