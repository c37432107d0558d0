import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';

/** An empty database of a test's own. */
export interface TestDatabase {
  url: string;
  /** A folder that goes when the database goes. */
  folder: string;
  remove(): Promise<void>;
}

const { TEST_DATABASE, TEST_DATABASE_URL } = process.env;

/** A server where the environment names one; a project of tests may want the embedded database all the same. */
export const onMariadb = Boolean(TEST_DATABASE_URL) && TEST_DATABASE !== 'sqlite';

/** On the server of TEST_DATABASE_URL, whose account may create databases; else SQLite in a temporary folder. */
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
