import { SQLITE_LOCK } from './retry-policy.js';
import type { SqlValue } from './sql-dialect.js';

/**
 * Prepares a connection to a database file. The driver is synchronous, so no statement waits for the lock of another
 * process: it fails at once, and its caller repeats it. The file gets a write-ahead log (WAL), so that reads need no lock.
 */
export async function prepareFile(connection: SqliteConnection): Promise<void> {
  connection.pragma('busy_timeout = 0');
  await SQLITE_LOCK.run(async () => void connection.pragma('journal_mode = WAL'));
}

/** What the service uses of a connection of libsql, which has the interface of better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): {
    all(...parameters: unknown[]): unknown[];
    run(...parameters: unknown[]): { changes: number };
  };
  exec(sql: string): void;
  pragma(text: string): unknown;
}

/** SQLite keeps a prepared statement in memory until it is closed. The least recently used one is dropped. */
const MAX_PREPARED_STATEMENTS = 500;

/** The prepared statements of one connection. */
export class SqliteStatements {
  private readonly prepared = new Map<string, ReturnType<SqliteConnection['prepare']>>();

  constructor(private readonly connection: SqliteConnection) {}

  select(sql: string, parameters: SqlValue[]): unknown[] {
    return this.prepare(sql).all(...parameters.map(asStored));
  }

  /** Returns the number of rows that the statement matched. */
  write(sql: string, parameters: SqlValue[]): number {
    return this.prepare(sql).run(...parameters.map(asStored)).changes;
  }

  private prepare(sql: string): ReturnType<SqliteConnection['prepare']> {
    const statement = this.prepared.get(sql) ?? this.connection.prepare(sql);
    this.prepared.delete(sql); // a Map keeps the order of insertion, so the first statement is the least recently used
    this.prepared.set(sql, statement);
    if (this.prepared.size > MAX_PREPARED_STATEMENTS) {
      const [leastRecentlyUsed] = this.prepared.keys();
      this.prepared.delete(leastRecentlyUsed as string);
    }
    return statement;
  }
}

/** SQLite has neither dates nor booleans. TypeORM stores them in these forms. */
export function asStored(value: SqlValue): string | number | null {
  if (value instanceof Date) return value.toISOString().replace('T', ' ').slice(0, -1);
  return typeof value === 'boolean' ? Number(value) : value;
}
