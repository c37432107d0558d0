import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import mysql, { type Connection } from 'mysql2/promise';
import { DataSource } from 'typeorm';
import { onServer, prepareNewDatabases } from '../../packages/conformance-kit/src/test-database.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../src/platform/database/data-source-options.js';
import { migrate } from '../../src/platform/database/migrate.js';

const SQLITE = 'sqlite:';

/**
 * The tables and rows that the service's migrations create. The migrations run in the first database only. The other
 * databases get a copy: of the file on SQLite, else of the definitions of the tables.
 */
export class MigratedSchema {
  private copy: Promise<(url: string) => Promise<void>> | undefined;

  /** Creates the tables in an empty database. */
  async createIn(url: string): Promise<void> {
    if (this.copy) return (await this.copy)(url);
    this.copy = migrated(url);
    await this.copy.catch((error) => {
      this.copy = undefined;
      throw error;
    });
  }
}

/** Migrations take longer than most tests, so they run once in each process of the tests. */
const schema = new MigratedSchema();

/** Lets each new database of a test have the tables. */
prepareNewDatabases((url) => schema.createIn(url));

/** Migrates a database. Resolves to a function that copies its schema to an empty one. */
async function migrated(url: string): Promise<(url: string) => Promise<void>> {
  const options = dataSourceOptions(loadConfiguration({ DATABASE_URL: url, SIGNING_KEYS_FILE: 'unused' }));
  const dataSource = await new DataSource(options).initialize();
  try {
    await migrate(dataSource);
    if (url.startsWith(SQLITE)) {
      const content = await copyOf(dataSource, url.slice(SQLITE.length));
      return async (other) => writeFileSync(other.slice(SQLITE.length), content);
    }
  } finally {
    await dataSource.destroy();
  }
  const statements = await onServer(new URL(url), statementsOf);
  return (other) => onServer(new URL(other), async (connection) => void (await connection.query(statements)));
}

/**
 * The content of a SQLite database. SQLite writes it to a file of its own: a process that reads the file of an open
 * database loses its locks on it, and the content can still be in the `-wal` file.
 */
async function copyOf(dataSource: DataSource, path: string): Promise<Buffer> {
  const copy = `${path}.copy`;
  await dataSource.query('VACUUM INTO ?', [copy]);
  const content = readFileSync(copy);
  rmSync(copy);
  return content;
}

/** The statements that create the tables of a database with their rows. */
async function statementsOf(connection: Connection): Promise<string> {
  const [tables] = await connection.query<mysql.RowDataPacket[]>('SHOW TABLES');
  const statements: string[] = [];
  for (const name of tables.flatMap((row) => Object.values(row))) {
    const [[table]] = await connection.query<mysql.RowDataPacket[]>('SHOW CREATE TABLE ??', [name]);
    statements.push(table?.['Create Table']);
    const [rows] = await connection.query<mysql.RowDataPacket[]>({ sql: `SELECT * FROM ${name}`, rowsAsArray: true });
    if (rows.length > 0) statements.push(mysql.format(`INSERT INTO ${name} VALUES ?`, [rows]));
  }
  return statements.join(';');
}
