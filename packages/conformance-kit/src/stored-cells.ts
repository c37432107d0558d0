import { createHash } from 'node:crypto';
import { DataSource } from 'typeorm';
import { containsSecret } from './secret-search.js';
import type { TestService } from './test-service.js';

interface StoredColumn {
  table: string;
  column: string;
  type: string;
}

/** What the service writes at any time, because it gives positions in its feeds in the background. */
const PUBLISHED_COLUMNS: Record<string, string[]> = {
  ended: ['position', 'published_until'],
  customer_event: ['position'],
};
const PUBLISHER_TABLE = 'revocation_feed';
/** TypeORM's record of the migrations. */
const MIGRATIONS_TABLE = 'migrations';
const MYSQL_COLUMNS =
  'SELECT table_name AS `table`, column_name AS `column`, column_type AS `type` FROM information_schema.columns WHERE table_schema = DATABASE()';
const SQLITE_COLUMNS = `SELECT tables.name AS "table", columns.name AS "column", columns.type AS "type"
  FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'`;

async function storedColumns({ application }: TestService): Promise<StoredColumn[]> {
  const dataSource = application.get(DataSource);
  const isMysql = ['mysql', 'mariadb'].includes(dataSource.options.type);
  const columns: StoredColumn[] = await dataSource.query(isMysql ? MYSQL_COLUMNS : SQLITE_COLUMNS);
  return columns.filter(({ table }) => table !== MIGRATIONS_TABLE && !table.startsWith('sqlite_'));
}

async function storedRows(service: TestService): Promise<[table: string, row: object][]> {
  const found: [string, object][] = [];
  for (const table of new Set((await storedColumns(service)).map((column) => column.table))) {
    const rows: object[] = await service.application.get(DataSource).query(`SELECT * FROM ${table}`);
    found.push(...rows.map((row): [string, object] => [table, row]));
  }
  return found;
}

/** The columns with a cell that satisfies a condition, as `table.column`. A cell is compared as text. */
export async function columnsWith(service: TestService, isFound: (cell: string) => boolean): Promise<string[]> {
  const found = (await storedRows(service)).flatMap(([table, row]) =>
    Object.entries(row).flatMap(([column, cell]) => (isFound(textOf(cell)) ? [`${table}.${column}`] : [])),
  );
  return [...new Set(found)].sort();
}

/** The columns that have each of several texts, in one of its forms. A short text may occur once by chance. */
export async function columnsWithAll(service: TestService, texts: string[], formsOf = (text: string) => [text]) {
  const columnsOf = (text: string) =>
    columnsWith(service, (cell) => formsOf(text).some((form) => containsSecret(cell, form)));
  const [first = [], ...others] = await Promise.all(texts.map(columnsOf));
  return first.filter((column) => others.every((columns) => columns.includes(column)));
}

/** @throws Error if a text is longer than its column. SQLite stores it; other databases reject it with an error. */
export async function assertFits(service: TestService): Promise<void> {
  const columns = await storedColumns(service);
  for (const [table, row] of await storedRows(service))
    for (const [column, cell] of Object.entries(row)) {
      const { type } = columns.find((each) => each.table === table && each.column === column) as StoredColumn;
      const length = /^varchar\((\d+)\)$/i.exec(type)?.[1];
      if (length !== undefined && typeof cell === 'string' && cell.length > Number(length))
        throw new Error(`${table}.${column}: has a text of ${cell.length} characters in a ${type}`);
    }
}

/**
 * The rows of all tables with one of the texts, as JSON with the name of their table, without what the feeds change.
 */
export async function rowsWith(service: TestService, texts: string[]): Promise<string[]> {
  const rows = (await storedRows(service))
    .filter(([table]) => table !== PUBLISHER_TABLE)
    .map(([table, row]) => `${table} ${JSON.stringify(withoutPublished(table, row))}`);
  return rows.filter((row) => texts.some((text) => row.includes(text)));
}

function withoutPublished(table: string, row: object): object {
  return Object.fromEntries(Object.entries(row).filter(([column]) => !PUBLISHED_COLUMNS[table]?.includes(column)));
}

/** The forms in which a table may have a hash. */
export function hashesOf(value: string): string[] {
  const hash = createHash('sha256').update(value).digest();
  return [hash.toString('hex'), hash.toString('base64url'), hash.toString('base64'), hash.toString('latin1')];
}

function textOf(cell: unknown): string {
  if (typeof cell === 'string') return cell;
  if (Buffer.isBuffer(cell)) return cell.toString('latin1');
  if (cell instanceof Date) return cell.toISOString();
  return JSON.stringify(cell) ?? '';
}
