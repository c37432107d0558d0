import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const HEAP_OF_LIST = join(import.meta.dirname, 'support/heap-of-list.ts');
const MAX_HEAP_BYTES = 5_000_000;

it('the list of 10,000 revocations takes less than 5 MB of the heap', async () => {
  const parameters = ['--expose-gc', '--import', 'tsx', HEAP_OF_LIST, '10000'];
  const { stdout } = await promisify(execFile)(process.execPath, parameters);
  const { size, bytes } = JSON.parse(stdout);
  expect(size).toBe(10_000);
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(MAX_HEAP_BYTES);
});
