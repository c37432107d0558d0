import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql, { type Connection } from 'mysql2/promise';

/** A new database for one test. */
export interface TestDatabase {
  url: string;
  /** A folder that is deleted together with the database. */
  folder: string;
  remove(): Promise<void>;
}

const { TEST_DATABASE, TEST_DATABASE_URL, TEST_DATABASE_FOLDER } = process.env;

/** Whether tests use the server of TEST_DATABASE_URL. TEST_DATABASE=sqlite overrides it for a test project. */
export const onMariadb = Boolean(TEST_DATABASE_URL) && TEST_DATABASE !== 'sqlite';

/** Creates the tables of a new database; by default, the service does at its start. */
let prepare: (url: string) => Promise<void> = async () => undefined;

/** Sets how new databases get their tables, for tests that start many services. */
export function prepareNewDatabases(createTables: (url: string) => Promise<void>): void {
  prepare = createTables;
}

/** Creates a database for one service. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  try {
    await prepare(database.url);
    return database;
  } catch (error) {
    await database.remove();
    throw error;
  }
}

/**
 * Creates a database without tables, for tests of migrations: on the server of TEST_DATABASE_URL, whose account must be
 * able to create databases, else SQLite in a new folder of TEST_DATABASE_FOLDER.
 */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(TEST_DATABASE_FOLDER ?? tmpdir(), 'service-test-'));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  if (!onMariadb) {
    return { url: `sqlite:${join(folder, 'test.sqlite')}`, folder, remove: async () => removeFolder() };
  }
  const server = new URL(TEST_DATABASE_URL as string);
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onServer(server, (connection) => connection.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`));
  const remove = async () => {
    await onServer(server, (connection) => connection.query(`DROP DATABASE ${name}`));
    removeFolder();
  };
  return { url: Object.assign(new URL(server), { pathname: `/${name}` }).href, folder, remove };
}

export async function onServer<Result>(url: URL, work: (connection: Connection) => Promise<Result>): Promise<Result> {
  const connection = await mysql.createConnection({
    host: url.hostname,
    port: Number(url.port || 3306),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    multipleStatements: true,
    jsonStrings: true,
  });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}
