import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';

/** A new database for one test. */
export interface TestDatabase {
  url: string;
  /** A folder that is deleted together with the database. */
  folder: string;
  remove(): Promise<void>;
}

const { TEST_DATABASE, TEST_DATABASE_URL } = process.env;

/** Whether tests use the server of TEST_DATABASE_URL. TEST_DATABASE=sqlite overrides it for a test project. */
export const onMariadb = Boolean(TEST_DATABASE_URL) && TEST_DATABASE !== 'sqlite';

/**
 * Creates a database on the server of TEST_DATABASE_URL, whose account must be able to create databases, else SQLite in
 * a folder.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'service-test-'));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  if (!onMariadb) {
    return { url: `sqlite:${join(folder, 'test.sqlite')}`, folder, remove: async () => removeFolder() };
  }
  const server = new URL(TEST_DATABASE_URL as string);
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onServer(server, `CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const remove = async () => {
    await onServer(server, `DROP DATABASE ${name}`);
    removeFolder();
  };
  return { url: Object.assign(new URL(server), { pathname: `/${name}` }).href, folder, remove };
}

async function onServer(server: URL, statement: string): Promise<void> {
  const connection = await mysql.createConnection({
    host: server.hostname,
    port: Number(server.port || 3306),
    user: decodeURIComponent(server.username),
    password: decodeURIComponent(server.password),
  });
  await connection.query(statement);
  await connection.end();
}
