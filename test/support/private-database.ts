import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { DataSource } from 'typeorm';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { startMariadb } from '../../scripts/mariadb.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../src/platform/database/data-source-options.js';
import { migrate } from '../../src/platform/database/migrate.js';

const PASSWORD = 'first-password-of-the-test';

/** An account that global settings such as `read_only` affect, with the privileges of docs/operations.md. */
const CREATE_ACCOUNT = [
  `CREATE USER 'service'@'%' IDENTIFIED BY '${PASSWORD}'`,
  "GRANT SELECT, INSERT, UPDATE, DELETE ON service.* TO 'service'@'%'",
];

/** A migrated database on its own MariaDB, whose global settings and accounts a test may change. */
export interface PrivateDatabase extends TestDatabase {
  /** Sends statements as an administrator. Returns the rows of the last one. */
  administer(...statements: string[]): Promise<RowDataPacket[]>;
  /** Ends all connections of the service, so that its next ones have the present global settings. */
  disconnect(): Promise<void>;
  /** The URL with other parts, such as the password. */
  urlWith(parts: Partial<Pick<URL, 'username' | 'password' | 'hostname' | 'port'>>): string;
}

/** `url` has the account of the service. */
export async function startPrivateDatabase({ isMigrated = true } = {}): Promise<PrivateDatabase> {
  const server = await startMariadb();
  const folder = mkdtempSync(join(tmpdir(), 'private-database-'));
  const administratorUrl = await server.createDatabase('service');
  if (isMigrated) await migrateDatabase(administratorUrl);
  const administrator = await mysql.createConnection(administratorUrl.replace(/^\w+/, 'mysql'));
  const administer = async (...statements: string[]) => {
    let rows: RowDataPacket[] = [];
    for (const each of statements) [rows] = await administrator.query<RowDataPacket[]>(each);
    return rows;
  };
  await administer(...CREATE_ACCOUNT);
  const urlWith: PrivateDatabase['urlWith'] = (parts) =>
    Object.assign(new URL(administratorUrl), { username: 'service', password: PASSWORD, ...parts }).href;
  return {
    url: urlWith({}),
    folder,
    administer,
    disconnect: async () => void (await administer('KILL USER service')),
    urlWith,
    async remove() {
      administrator.destroy();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function migrateDatabase(url: string): Promise<void> {
  const options = dataSourceOptions(loadConfiguration({ DATABASE_URL: url, SIGNING_KEYS_FILE: 'unused' }));
  const dataSource = await new DataSource(options).initialize();
  await migrate(dataSource).finally(() => dataSource.destroy());
}
