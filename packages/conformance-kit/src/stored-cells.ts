import { createHash } from 'node:crypto';
import { DataSource } from 'typeorm';
import { estimatedBits } from './guess-values.js';
import { ADDRESS, containsSecret } from './secret-search.js';
import type { TestService } from './test-service.js';

export interface StoredColumn {
  table: string;
  column: string;
  type: string;
}

/** TypeORM's record of the migrations. */
const MIGRATIONS_TABLE = 'migrations';

/** Every column of every table of the service's database. */
export async function storedColumns({ application }: TestService): Promise<StoredColumn[]> {
  const dataSource = application.get(DataSource);
  const isMysql = ['mysql', 'mariadb'].includes(dataSource.options.type);
  const columns: StoredColumn[] = await dataSource.query(isMysql ? MYSQL_COLUMNS : SQLITE_COLUMNS);
  return columns.filter(({ table }) => table !== MIGRATIONS_TABLE && !table.startsWith('sqlite_'));
}

/** The columns with a cell that satisfies a condition, as `table.column`. A cell is compared as text. */
export async function columnsWith(service: TestService, isFound: (cell: string) => boolean): Promise<string[]> {
  const found = (await storedRows(service)).flatMap(([table, row]) =>
    Object.entries(row).flatMap(([column, cell]) => (isFound(textOf(cell)) ? [`${table}.${column}`] : [])),
  );
  return [...new Set(found)].sort();
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

/** The rows of all tables with one of the texts, as JSON with the name of their table. */
export async function rowsWith(service: TestService, texts: string[]): Promise<string[]> {
  const rows = (await storedRows(service)).map(([table, row]) => `${table} ${JSON.stringify(row)}`);
  return rows.filter((row) => texts.some((text) => row.includes(text)));
}

async function storedRows(service: TestService): Promise<[table: string, row: object][]> {
  const found: [string, object][] = [];
  for (const table of new Set((await storedColumns(service)).map((column) => column.table))) {
    const rows: object[] = await service.application.get(DataSource).query(`SELECT * FROM ${table}`);
    found.push(...rows.map((row): [string, object] => [table, row]));
  }
  return found;
}

function textOf(cell: unknown): string {
  if (typeof cell === 'string') return cell;
  if (Buffer.isBuffer(cell)) return cell.toString('latin1');
  if (cell instanceof Date) return cell.toISOString();
  return JSON.stringify(cell) ?? '';
}

const MYSQL_COLUMNS =
  'SELECT table_name AS `table`, column_name AS `column`, column_type AS `type` FROM information_schema.columns WHERE table_schema = DATABASE()';
const SQLITE_COLUMNS = `SELECT tables.name AS "table", columns.name AS "column", columns.type AS "type"
  FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'`;

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

/** @throws Error if a column has the SHA-256 of each of some short values or addresses */
export async function assertNoShortHash(service: TestService, values: string[]): Promise<void> {
  const short = values.filter((value) => ADDRESS.test(value) || estimatedBits(value) <= MAX_SEARCHED_BITS);
  const stored = await columnsWithEach(service, short.map(hashesOf));
  if (stored.length === 0) return;
  const solution = 'hash it together with a long handle, or by HMAC with a key from a file';
  throw new Error(`${stored.join(', ')}: has the hash of a short text, which trying all values reverses; ${solution}`);
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
