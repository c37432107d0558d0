import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onServer } from './database-server.js';

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
