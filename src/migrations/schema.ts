import { type QueryRunner, Table, type TableColumnOptions, type TableIndexOptions, type TableOptions } from 'typeorm';

type More = Partial<TableColumnOptions>;

/** Columns that mean the same on SQLite, MariaDB and MySQL, and in which no schema differs from its entities. */
export class Columns {
  /** Bytes compare as bytes: ids that differ in case are different ids. SQLite compares so by itself. */
  private readonly exact: More;

  constructor(runner: QueryRunner) {
    const isSqlite = runner.connection.options.type === 'better-sqlite3';
    this.exact = isSqlite ? {} : { charset: 'utf8mb4', collation: 'utf8mb4_bin' };
  }

  text(name: string, length: number, more: More = {}): TableColumnOptions {
    return { name, type: 'varchar', length: String(length), ...this.exact, ...more };
  }

  key(name: string, length: number): TableColumnOptions {
    return this.text(name, length, { isPrimary: true });
  }

  json(name: string, more: More = {}): TableColumnOptions {
    return { name, type: 'text', ...more };
  }

  flag(name: string): TableColumnOptions {
    return { name, type: 'boolean' };
  }

  integer(name: string, more: More = {}): TableColumnOptions {
    return { name, type: 'integer', ...more };
  }

  time(name: string, more: More = {}): TableColumnOptions {
    return { name, type: 'datetime', precision: 3, ...more };
  }
}

export const NULLABLE: More = { isNullable: true };

/** The index by which a purge finds what has expired. */
export function expiryIndex(table: string): TableIndexOptions[] {
  return [{ name: `${table}_expires_at`, columnNames: ['expires_at'] }];
}

/** Creates tables that are not there yet: a migration that died half-way, on a server without transactional DDL, goes on. */
export async function createTables(runner: QueryRunner, tables: TableOptions[]): Promise<void> {
  for (const table of tables) await runner.createTable(new Table(table), true);
}

export async function dropTables(runner: QueryRunner, names: string[]): Promise<void> {
  for (const name of names) await runner.dropTable(name, true);
}
