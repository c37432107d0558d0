import type { SqlClient, SqlValue } from './sql-client.js';

/** The part of libsql, and of better-sqlite3 whose interface it has, that a statement needs. */
export interface SqliteConnection {
  prepare(sql: string): {
    all(...parameters: unknown[]): unknown[];
    run(...parameters: unknown[]): { changes: number };
  };
}

/** Prepared statements of the embedded database, which answers at once in this very process. */
export class SqliteClient implements SqlClient {
  readonly ignore = 'OR IGNORE';
  readonly now = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
  private readonly statements = new Map<string, ReturnType<SqliteConnection['prepare']>>();

  constructor(private readonly connection: SqliteConnection) {}

  millisecondsSince(column: string): string {
    return `CAST(ROUND((julianday('now') - julianday(${column})) * 86400000) AS INTEGER)`;
  }

  /** SQLite's own DELETE knows no LIMIT. */
  deleteInOrder(table: string, where: string, order: string, limit: number): string {
    return `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${limit})`;
  }

  async select(sql: string, parameters: SqlValue[]): Promise<unknown[]> {
    return this.prepared(sql).all(...parameters.map(asStored));
  }

  async insert(sql: string, parameters: SqlValue[]): Promise<void> {
    await this.change(sql, parameters);
  }

  async change(sql: string, parameters: SqlValue[]): Promise<number> {
    return this.prepared(sql).run(...parameters.map(asStored)).changes;
  }

  private prepared(sql: string): ReturnType<SqliteConnection['prepare']> {
    const known = this.statements.get(sql);
    if (known) return known;
    const statement = this.connection.prepare(sql);
    this.statements.set(sql, statement);
    return statement;
  }
}

/** SQLite knows neither dates nor booleans; TypeORM stores them in these forms. */
function asStored(value: SqlValue): string | number | null {
  if (value instanceof Date) return value.toISOString().replace('T', ' ').slice(0, -1);
  return typeof value === 'boolean' ? Number(value) : value;
}
