import { LRUCache } from 'lru-cache';
import { SQLITE_LOCK } from './retry-policy.js';
import { type SqlValue, timeOf } from './sql-dialect.js';

/** The driver is synchronous: a statement fails at a lock, and its caller repeats it. Reads need no lock (WAL). */
export async function prepareFile(connection: SqliteConnection): Promise<void> {
  connection.pragma('busy_timeout = 0');
  await SQLITE_LOCK.run(async () => void connection.pragma('journal_mode = WAL'));
}

/** What libsql has of the interface of better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): {
    all(...parameters: unknown[]): unknown[];
    run(...parameters: unknown[]): { changes: number };
    columns(): { name: string; type: string | null }[];
  };
  exec(sql: string): void;
  pragma(text: string): unknown;
  close(): void;
}

/** SQLite keeps a prepared statement in memory until it is closed. */
const MAX_PREPARED_STATEMENTS = 500;

interface PreparedStatement {
  statement: ReturnType<SqliteConnection['prepare']>;
  /** Known after the first SELECT. */
  timeColumns?: string[];
}

export class SqliteStatements {
  private readonly prepared = new LRUCache<string, PreparedStatement>({ max: MAX_PREPARED_STATEMENTS });

  constructor(private readonly connection: SqliteConnection) {}

  select(sql: string, parameters: SqlValue[]): unknown[] {
    const prepared = this.prepare(sql);
    const rows = prepared.statement.all(...parameters.map(asStored)) as Record<string, unknown>[];
    prepared.timeColumns ??= timeColumnsOf(prepared);
    return withTimes(rows, prepared.timeColumns);
  }

  write(sql: string, parameters: SqlValue[]): number {
    return this.prepare(sql).statement.run(...parameters.map(asStored)).changes;
  }

  private prepare(sql: string): PreparedStatement {
    const known = this.prepared.get(sql);
    if (known) return known;
    const prepared: PreparedStatement = { statement: this.connection.prepare(sql) };
    this.prepared.set(sql, prepared);
    return prepared;
  }
}

/** SQLite stores times as text. `MAX(won_at) AS last_won_at` has no type there, so its name decides. */
function timeColumnsOf({ statement }: PreparedStatement): string[] {
  const isTime = ({ name, type }: { name: string; type: string | null }) =>
    type === null ? isTimeColumn(name) : type.startsWith('datetime');
  const times = statement.columns().filter(isTime);
  return times.map(({ name }) => name);
}

/** SQLite has neither dates nor booleans. TypeORM stores them in these forms. */
export function asStored(value: SqlValue): string | number | null {
  if (value instanceof Date) return value.toISOString().replace('T', ' ').slice(0, -1);
  return typeof value === 'boolean' ? Number(value) : value;
}

/** The rows of a SELECT with times as `Date`, as the driver of MySQL returns them. Changes the rows. */
export function withTimes(rows: Record<string, unknown>[], columns: string[]): Record<string, unknown>[] {
  for (const row of rows) {
    for (const column of columns) {
      const value = row[column];
      if (typeof value === 'string') row[column] = new Date(timeOf(value));
    }
  }
  return rows;
}

const isTimeColumn = (name: string) => /_(at|until)$/.test(name);

/** `withTimes` for rows whose declared types are unknown: the names of the columns say which are times. */
export function withNamedTimes(rows: Record<string, unknown>[]): Record<string, unknown>[] {
  return withTimes(rows, Object.keys(rows[0] ?? {}).filter(isTimeColumn));
}
