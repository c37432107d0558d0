import type { SqlText } from './sql-dialect.js';

/** A SELECT in parts, so that a batch is composed of them. */
export interface BatchedSelect {
  /** The select list: each column or expression with its name. */
  columns: readonly SqlText[];
  /** Everything after `FROM`; no lock, and an ORDER BY only with a LIMIT. */
  from?: SqlText;
  /** Says at the declaration that the statement is batched. Each SELECT in parts is. */
  batch: true;
}

/** Text whose meaning a batch would change: UNION, locks, and ORDER BY without LIMIT. */
const UNBATCHABLE = /\bUNION\b|\bFOR (?:UPDATE|SHARE)\b|\bORDER BY\b(?!.*\bLIMIT\b)/is;

/** @throws Error if a batch of this SELECT could return other rows than the single SELECTs */
export function assertCanBeBatched({ columns, from }: BatchedSelect): void {
  for (const column of columns) {
    if (typeof column !== 'string') continue;
    if (column === '*' || column.endsWith('.*')) throw new Error('a batched SELECT names each of its columns');
    if (/^DISTINCT\b/i.test(column)) throw new Error('a batched SELECT cannot be DISTINCT');
  }
  if (typeof from === 'string' && UNBATCHABLE.test(from))
    throw new Error('a batched SELECT has no UNION and no lock, and ORDER BY only with LIMIT');
}
