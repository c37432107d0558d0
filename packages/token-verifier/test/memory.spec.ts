import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const MEMORY_OF_LIST = join(import.meta.dirname, 'support/memory-of-list.ts');
/** The bytes per entry rise and fall while a list grows. Up to this size they reach their maximum many times. */
const ENTRY_COUNT = 200_000;

it('the list takes less than 1 MB while it is empty, and at most 36 bytes for each entry, also while it grows', async () => {
  const parameters = ['--expose-gc', '--import', 'tsx', MEMORY_OF_LIST, `${ENTRY_COUNT}`, '100'];
  const { stdout } = await promisify(execFile)(process.execPath, parameters);
  const { emptyBytes, size, bytesPerEntry, maxBytesPerEntry } = JSON.parse(stdout);
  expect(size).toBe(ENTRY_COUNT);
  expect(emptyBytes).toBeLessThan(1_000_000);
  expect(bytesPerEntry).toBeGreaterThan(16);
  expect(bytesPerEntry).toBeLessThanOrEqual(36);
  expect(maxBytesPerEntry).toBeLessThanOrEqual(36);
});
