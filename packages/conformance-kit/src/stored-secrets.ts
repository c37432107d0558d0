import { createHash } from 'node:crypto';
import { containsSecret } from './secret-search.js';
import { columnsWith } from './stored-cells.js';
import type { TestService } from './test-service.js';
import { estimatedBits } from './text-guesses.js';

/** A computer tries so many values in minutes. */
const MAX_SEARCHED_BITS = 32;

/**
 * @param secretsOfProofs the secrets of several proofs. A short secret of one proof may occur by chance
 * @throws Error if a column has a secret of each proof in plain text
 */
export async function assertInNoTable(service: TestService, secretsOfProofs: string[][]): Promise<void> {
  const stored = await columnsWithEach(service, secretsOfProofs);
  if (stored.length > 0) throw new Error(`${stored.join(', ')}: has a proof in plain text; store its sha256(…)`);
}

/** @throws Error if a column has the SHA-256 of each of some short values */
export async function assertNoShortHash(service: TestService, values: string[]): Promise<void> {
  const short = values.filter((value) => estimatedBits(value) <= MAX_SEARCHED_BITS);
  const stored = await columnsWithEach(service, short.map(hashesOf));
  if (stored.length === 0) return;
  const solution = 'hash it together with a long handle, or by HMAC with a key from a file';
  throw new Error(`${stored.join(', ')}: has the hash of a short proof, which trying all values reverses; ${solution}`);
}

async function columnsWithEach(service: TestService, groups: string[][]): Promise<string[]> {
  const columnsOf = (texts: string[]) =>
    columnsWith(service, (cell) => texts.some((text) => containsSecret(cell, text)));
  const [first = [], ...others] = await Promise.all(groups.map(columnsOf));
  return first.filter((column) => others.every((columns) => columns.includes(column)));
}

function hashesOf(value: string): string[] {
  const hash = createHash('sha256').update(value).digest();
  return [hash.toString('hex'), hash.toString('base64url'), hash.toString('base64'), hash.toString('latin1')];
}
