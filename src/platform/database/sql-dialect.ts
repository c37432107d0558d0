import type { DataSource } from 'typeorm';

/** 1 or 0, also for NULL. Some servers return a bare condition as the text `false`, which is true in JavaScript. */
export function sqlFlag(condition: string): string {
  return `CASE WHEN ${condition} THEN 1 ELSE 0 END`;
}

/** Milliseconds since 1970 of a datetime in a raw SELECT: mysql2 returns a Date, SQLite returns the stored text. */
export function timeOf(value: Date | string): number {
  return value instanceof Date ? value.getTime() : Date.parse(`${value.replace(' ', 'T')}Z`);
}

/** A row for JSON: the times in `columns` become texts in ISO 8601, which are equal on all databases. */
export function withIsoTimes<Row extends object>(row: Row, columns: (keyof Row & string)[]): Record<string, unknown> {
  const isoTime = (value: unknown) => (value === null ? null : new Date(timeOf(value as Date | string)).toISOString());
  return { ...row, ...Object.fromEntries(columns.map((column) => [column, isoTime(row[column])])) };
}

/** A value that a column of this service can hold. */
export type SqlValue = string | number | boolean | Date | null;

/** The SQL in which the databases differ. */
export interface SqlDialect {
  /** The present time of the database, with milliseconds. All processes share it. */
  readonly now: string;
  /** Begins an INSERT that skips a row whose key exists: `INSERT IGNORE` or `INSERT OR IGNORE`. */
  readonly insertIgnore: string;
  /** The whole milliseconds from a time in a column to the present time of the database. */
  readonly millisecondsSince: (column: string) => string;
  /** Ends a SELECT that leaves out the rows that another transaction has locked. SQLite has no locks on rows. */
  readonly skipLocked: string;
  /**
   * Ends a SELECT that locks the rows that it reads. SQLite has no locks on rows; its transactions follow each other.
   */
  readonly forUpdate: string;
  /** A DELETE of at most `limit` rows, in an order. */
  readonly deleteInOrder: (table: string, where: string, order: string, limit: number) => string;
}

export const MYSQL_DIALECT: SqlDialect = {
  now: 'CURRENT_TIMESTAMP(3)',
  insertIgnore: 'INSERT IGNORE',
  skipLocked: ' FOR UPDATE SKIP LOCKED',
  forUpdate: ' FOR UPDATE',
  millisecondsSince: (column) => `(TIMESTAMPDIFF(MICROSECOND, ${column}, CURRENT_TIMESTAMP(3)) DIV 1000)`,
  deleteInOrder: (table, where, order, limit) => `DELETE FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${limit}`,
};

export const SQLITE_DIALECT: SqlDialect = {
  now: "strftime('%Y-%m-%d %H:%M:%f', 'now')",
  insertIgnore: 'INSERT OR IGNORE',
  skipLocked: '',
  forUpdate: '',
  millisecondsSince: (column) => `CAST(ROUND((julianday('now') - julianday(${column})) * 86400000) AS INTEGER)`,
  // SQLite's DELETE has no LIMIT
  deleteInOrder: (table, where, order, limit) =>
    `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${limit})`,
};

export const isSelect = (sql: string): boolean => /^\s*SELECT\b/i.test(sql);

export function dialectOf({ options }: DataSource): SqlDialect {
  return options.type === 'better-sqlite3' ? SQLITE_DIALECT : MYSQL_DIALECT;
}

/** SQL with a `?` for each parameter, written out or made for the dialect of the database. */
export type SqlText = string | ((dialect: SqlDialect) => string);
