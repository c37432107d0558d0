import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** The root folder of the project. */
export const PROJECT = join(import.meta.dirname, '../..');

/** The text of a file of the project. */
export const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');

/** A folder outside of the project for the tests of a file or of a `describe`. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
