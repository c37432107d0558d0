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

/** Where a page ended: the number of rows before, and a hash of the last one, because keys of rows may be secrets. */
const POSITION = /^(?<count>[0-9]{1,15}) (?<last>[0-9a-f]{64})$/;

/**
 * Reads the next rows of a table, and again the last row of the previous page. If another row is now in its place, rows
 * before it were changed or deleted. The table then begins again, so that no row is missing.
 *
 * @param after `next` of the page before
 * @throws OAuthError `invalid_request` if `after` has another form
 */
export async function exportPage(
  database: Database,
  table: ExportedTable,
  entityId: string,
  after = `0 ${hashOf(undefined)}`,
): Promise<ExportPage> {
  const position = POSITION.exec(after)?.groups;
  if (!position) throw invalidCursor();
  const count = Number(position.count);
  const offset = Math.max(count - 1, 0);
  const find = selectStatement<SqlValue[], StoredRow>(`${table.find} LIMIT ${MAX_ROWS} OFFSET ?`);
  const ids = Array<string>(table.find.split('?').length - 1).fill(entityId);
  const found = await database.select(find, [...ids, offset]);
  if (count > 0 && hashOf(found[0]) !== position.last) return exportPage(database, table, entityId);
  const rows = (count > 0 ? found.slice(1) : found).map((row) => table.shown?.(row, entityId) ?? row);
  const tables = { [table.name]: rows.map((row) => withIsoTimes(row, table.times ?? [])) };
  if (found.length < MAX_ROWS) return { tables };
  return { tables, next: `${offset + found.length} ${hashOf(found.at(-1))}` };
}

/** The error for a text that is no `next` of an export. */
export function invalidCursor(): OAuthError {
  return OAuthError.invalidRequest('after: not a next of this export');
}

function hashOf(row: object | undefined): string {
  return sha256(JSON.stringify(row ?? null));
}
