import type { BoundWrite } from './bound-write.js';
import type { SqlClient } from './sql-client.js';
import { SQLITE_DIALECT } from './sql-dialect.js';
import type { SqlValue } from './sql-value.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';

/** The part of libsql, and of better-sqlite3 whose interface it has, that a statement needs. */
export interface SqliteConnection {
  prepare(sql: string): {
    all(...parameters: unknown[]): unknown[];
    run(...parameters: unknown[]): { changes: number };
  };
}

/** Prepared statements of the embedded database, which runs synchronously in this process. */
export class SqliteClient implements SqlClient {
  readonly dialect = SQLITE_DIALECT;
  private readonly statements = new Map<string, ReturnType<SqliteConnection['prepare']>>();

  constructor(private readonly connection: SqliteConnection) {}

  async select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]> {
    return this.prepared(statement).all(...parameters.map(asStored));
  }

  async insert(statement: InsertStatement, parameters: SqlValue[]): Promise<void> {
    this.run(statement, parameters);
  }

  async execute(statement: WriteStatement, parameters: SqlValue[]): Promise<number> {
    return this.run(statement, parameters);
  }

  /** A savepoint, because TypeORM may have begun a transaction on the one connection. No other work runs in between. */
  async executeTogether(writes: BoundWrite[]): Promise<number[]> {
    this.connection.prepare('SAVEPOINT together').run();
    try {
      return writes.map(({ statement, parameters }) => this.run(statement, parameters));
    } catch (error) {
      this.connection.prepare('ROLLBACK TO together').run();
      throw error;
    } finally {
      this.connection.prepare('RELEASE together').run();
    }
  }

  private run(statement: Statement, parameters: SqlValue[]): number {
    return this.prepared(statement).run(...parameters.map(asStored)).changes;
  }

  private prepared(statement: Statement): ReturnType<SqliteConnection['prepare']> {
    const sql = statement.text(SQLITE_DIALECT);
    const existing = this.statements.get(sql);
    if (existing) return existing;
    const prepared = this.connection.prepare(sql);
    this.statements.set(sql, prepared);
    return prepared;
  }
}

/** SQLite has neither dates nor booleans. TypeORM stores them in these forms. */
export function asStored(value: SqlValue): string | number | null {
  if (value instanceof Date) return value.toISOString().replace('T', ' ').slice(0, -1);
  return typeof value === 'boolean' ? Number(value) : value;
}
