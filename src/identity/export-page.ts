import { OAuthError } from '../oauth/oauth-error.js';
import type { Database } from '../platform/database/database.js';
import { type SqlValue, withIsoTimes } from '../platform/database/sql-dialect.js';
import { selectStatement } from '../platform/database/statement.js';
import { sha256 } from '../platform/secret.js';

/** The maximum number of rows that a page of an export has of one table, and that a statement reads. */
const MAX_ROWS = 1_000;

/** Stored rows about a customer, by the name of their table. */
export type ExportedRows = Record<string, object[]>;

/** A part of an export. */
export interface ExportPage {
  tables: ExportedRows;
  /** Present if rows are missing. The next call sends this text and gets the rows that follow. */
  next?: string;
}

type StoredRow = Record<string, SqlValue>;

/** A table with rows about customers. */
export interface ExportedTable {
  name: string;
  /** A SELECT without secrets, in the order of a unique key, without a limit. Each parameter is the id of the customer. */
  find: string;
  /** The columns that are times. */
  times?: string[];
  /** The row without hashes of secrets and ids of browsers; if omitted, the whole row. */
  shown?(row: StoredRow, entityId: string): StoredRow;
}

/** Where a page ended: the number of rows before, and a hash of the last one. Keys of rows may be secrets. */
interface Position {
  count: number;
  last: string;
}

/** The parameters of `find`. */
function parametersOf({ find }: ExportedTable, entityId: string): string[] {
  return Array<string>(find.split('?').length - 1).fill(entityId);
}

/** Reads the next rows of each table that has more rows. @param after `next` of the page before */
export async function exportPage(
  database: Database,
  tables: ExportedTable[],
  entityId: string,
  after?: string,
): Promise<ExportPage> {
  const names = tables.map(({ name }) => name);
  const positions = after === undefined ? undefined : parseCursor<Record<string, Position>>(after, names);
  const next: Record<string, Position> = {};
  const page: ExportPage = { tables: {} };
  for (const table of tables) {
    const position = positions ? positions[table.name] : { count: 0, last: '' };
    if (!position) continue;
    const { rows, end } = await rowsAfter(database, table, entityId, position);
    const shown = rows.map((row) => table.shown?.(row, entityId) ?? row);
    page.tables[table.name] = shown.map((row) => withIsoTimes(row, table.times ?? []));
    if (end) next[table.name] = end;
  }
  return Object.keys(next).length === 0 ? page : { ...page, next: JSON.stringify(next) };
}

/**
 * Reads the last row of the page before too. If another row has its place now, rows before it were changed or deleted.
 * Then the table begins again, so that no row is missing.
 */
async function rowsAfter(
  database: Database,
  table: ExportedTable,
  entityId: string,
  { count, last }: Position,
): Promise<{ rows: StoredRow[]; end?: Position }> {
  if (!Number.isSafeInteger(count) || count < 0) throw invalidCursor();
  const offset = Math.max(count - 1, 0);
  const find = selectStatement<SqlValue[], StoredRow>(`${table.find} LIMIT ${MAX_ROWS} OFFSET ?`);
  const rows = await database.select(find, [...parametersOf(table, entityId), offset]);
  if (count > 0 && hashOf(rows[0]) !== last) return rowsAfter(database, table, entityId, { count: 0, last: '' });
  const end = rows.length === MAX_ROWS && { count: offset + rows.length, last: hashOf(rows.at(-1)) };
  return { rows: count > 0 ? rows.slice(1) : rows, ...(end && { end }) };
}

/**
 * @param names of the known fields. Another release of the service may have had more of them
 * @throws OAuthError `invalid_request` if the text is no JSON object, or has another field
 */
export function parseCursor<Cursor extends object>(text: string, names: string[]): Cursor {
  try {
    const cursor = JSON.parse(text);
    const isObject = typeof cursor === 'object' && cursor !== null;
    if (isObject && Object.keys(cursor).every((name) => names.includes(name))) return cursor;
  } catch {
    // below
  }
  throw invalidCursor();
}

/** The error for a text that is no `next` of an export. */
export function invalidCursor(): OAuthError {
  return OAuthError.invalidRequest('after: not a next of this export');
}

function hashOf(row: object | undefined): string {
  return sha256(JSON.stringify(row ?? null));
}
