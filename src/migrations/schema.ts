import {
  type MigrationInterface,
  type QueryRunner,
  Table,
  TableColumn,
  type TableColumnOptions,
  type TableIndexOptions,
  type TableOptions,
} from 'typeorm';

/** What a method of `Columns` takes to change the defaults of a column, such as `NULLABLE`. */
type More = Partial<TableColumnOptions>;

/** Defines columns that work alike on SQLite, MariaDB and MySQL, and that match the columns of the entities. */
export class Columns {
  /** Compares text byte by byte, so that ids that differ in case are different. SQLite does so by default. */
  private readonly binaryCollation: More;

  constructor(runner: QueryRunner) {
    const isSqlite = runner.connection.options.type === 'better-sqlite3';
    this.binaryCollation = isSqlite ? {} : { charset: 'utf8mb4', collation: 'utf8mb4_bin' };
  }

  text(name: string, length: number, more: More = {}): TableColumnOptions {
    return { name, type: 'varchar', length: String(length), ...this.binaryCollation, ...more };
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

  /** For values beyond 2^31. MySQL returns them as numbers to raw queries. */
  bigInteger(name: string, more: More = {}): TableColumnOptions {
    return { name, type: 'bigint', ...more };
  }

  time(name: string, more: More = {}): TableColumnOptions {
    return { name, type: 'datetime', precision: 3, ...more };
  }
}

/** Options of a column of `Columns` that admits NULL. */
export const NULLABLE: More = { isNullable: true };

/** The index by which the purge finds expired rows. */
export function expiryIndex(table: string): TableIndexOptions[] {
  return [{ name: `${table}_expires_at`, columnNames: ['expires_at'] }];
}

/** Creates missing tables. Without transactional DDL, a migration that failed half-way can therefore run again. */
export async function createTables(runner: QueryRunner, tables: TableOptions[]): Promise<void> {
  const unquoted = withoutQuotedCharsets(runner);
  for (const table of tables) await unquoted.createTable(new Table(table), true);
}

/** Adds missing columns to a table that exists. Rows of before have the default or NULL, so each column needs one. */
export async function addColumns(runner: QueryRunner, table: string, columns: TableColumnOptions[]): Promise<void> {
  const unquoted = withoutQuotedCharsets(runner);
  for (const column of columns) {
    if (!(await runner.hasColumn(table, column.name))) await unquoted.addColumn(table, new TableColumn(column));
  }
}

/** TypeORM quotes character sets and collations, which some servers reject. */
function withoutQuotedCharsets(runner: QueryRunner): QueryRunner {
  const query = (sql: string, ...more: unknown[]) =>
    (runner.query as (...all: unknown[]) => Promise<unknown>).call(
      runner,
      sql.replace(/(CHARACTER SET|COLLATE) "(\w+)"/g, '$1 $2'),
      ...more,
    );
  return Object.create(runner, { query: { value: query } });
}

/** Drops the tables that exist, in the `down` of a migration. */
export async function dropTables(runner: QueryRunner, names: string[]): Promise<void> {
  for (const name of names) await runner.dropTable(name, true);
}

export abstract class CreateTables implements MigrationInterface {
  protected abstract readonly tables: (its: Columns) => TableOptions[];

  async up(runner: QueryRunner): Promise<void> {
    await createTables(runner, this.tables(new Columns(runner)));
  }

  async down(runner: QueryRunner): Promise<void> {
    const names = this.tables(new Columns(runner)).map(({ name }) => name);
    await dropTables(runner, names.reverse());
  }
}
