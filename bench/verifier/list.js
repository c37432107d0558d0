// @ts-check
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The default of `maxEntries`. */
const ENTRY_COUNT = 5_000_000;
const PAGE_COUNT = 500;
const MEMORY_OF_LIST = join(import.meta.dirname, '../../packages/token-verifier/test/support/memory-of-list.ts');

/**
 * Measures the memory of a full list in a process of its own.
 *
 * @returns {Promise<import('../figures.js').Table>}
 */
export async function measureList() {
  const parameters = ['--expose-gc', '--import', 'tsx', MEMORY_OF_LIST, String(ENTRY_COUNT), String(PAGE_COUNT)];
  const { stdout } = await promisify(execFile)(process.execPath, parameters);
  const { emptyBytes, size, bytesPerEntry, maxBytesPerEntry } = JSON.parse(stdout);
  return {
    'the empty list': { bytes: emptyBytes },
    [`${size.toLocaleString('en-US')} entries`]: perEntry(bytesPerEntry, size),
    'the most while the list grows, with its garbage': perEntry(maxBytesPerEntry),
  };
}

/** @param {number} bytes @param {number} [size] */
function perEntry(bytes, size) {
  return { ...(size && { bytes: Math.round(bytes * size) }), 'bytes per entry': Number(bytes.toFixed(1)) };
}
