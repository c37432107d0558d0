import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer } from './authorization-headers.js';
import { cookieBody, TOKEN } from './cookie-grant.js';
import { environmentOf, runCli, type ServiceProcess, startServiceProcess } from './processes.js';
import { read, temporaryFolder } from './project-files.js';
import { writeRegistry } from './test-registry.js';
import { httpClientOf } from './test-service.js';
import { newCustomer, redeem, transferToken } from './transfers.js';

/** Errors of MySQL and MariaDB for a missing privilege. */
const DENIED = /^ER_[A-Z_]*ACCESS_DENIED/;

/** What only an account that may change the schema can do, and what neither account may do. */
const CHANGES_OF_SCHEMA = [
  'CREATE TABLE probe (id INTEGER)',
  'ALTER TABLE migrations ADD COLUMN probe INTEGER',
  'DROP TABLE migrations',
  'TRUNCATE TABLE migrations',
  'CREATE INDEX probe ON migrations (timestamp)',
];
const BEYOND_THE_DATABASE = [
  'SELECT * FROM mysql.user',
  'CREATE DATABASE probe',
  "CREATE USER 'probe'@'%' IDENTIFIED BY 'Probe-password-1'",
  'SET GLOBAL max_connections = 1000',
];

/** The statements of docs/operations.md, section Accounts, for a database and accounts with another name. */
function statementsFor(database: string): string[] {
  const [, section = ''] = read('docs/operations.md').split('\n### Accounts\n');
  const [, sql = ''] = /```sql\n(.*?)```/s.exec(section) ?? [];
  return sql
    .replaceAll(/\bservice\b/g, database)
    .replaceAll("'migration'", `'${database}_m'`)
    .split(';\n')
    .filter((each) => each.trim() !== '');
}

/** Tests the documented accounts on a server. `serverUrl` has an account that may create accounts. */
export function describeDatabaseAccounts(kind: string, serverUrl: () => string): void {
  describe(`the accounts of docs/operations.md on ${kind}`, () => {
    const database = `accounts_${process.pid}`;
    const folder = temporaryFolder('accounts');
    let service: ServiceProcess;
    let migrated: string;

    const urlOf = (user: string, password: string) =>
      Object.assign(new URL(serverUrl()), { username: user, password, pathname: `/${database}` }).href;
    const urls = {
      runtime: () => urlOf(database, 'PASSWORD-1'),
      migration: () => urlOf(`${database}_m`, 'PASSWORD-2'),
    };
    const environment = (account: keyof typeof urls) =>
      environmentOf({ url: urls[account](), folder, remove: async () => undefined });
    /** Runs statements, each in its own attempt. Returns the code of each error. */
    async function attempt(url: string, statements: string[]): Promise<string[]> {
      const connection = await mysql.createConnection(url.replace(/^\w+/, 'mysql'));
      try {
        const codes: string[] = [];
        for (const each of statements)
          codes.push(
            await connection.query(each).then(
              () => 'done',
              (error) => error.code,
            ),
          );
        return codes;
      } finally {
        connection.destroy();
      }
    }

    beforeAll(async () => {
      const codes = await attempt(serverUrl(), statementsFor(database));
      expect(codes).toEqual(Array(5).fill('done'));
      migrated = (await runCli(['migrate'], environment('migration'))).stdout;
      await runCli(['registry', 'apply', writeRegistry(join(folder, 'registry.yaml'))], environment('runtime'));
      service = await startServiceProcess({ ...environment('runtime'), MIGRATE_ON_START: 'false' });
    });
    afterAll(async () => {
      await service?.terminate();
      const drop = [`DROP DATABASE ${database}`, `DROP USER '${database}'@'%'`, `DROP USER '${database}_m'@'%'`];
      await attempt(serverUrl(), drop);
    });

    it('the migration account creates the schema', () => {
      expect(migrated).toMatch(/^migrated: /);
    });

    it('the runtime account serves: customers, tokens, transfers and revocations', async () => {
      const client = httpClientOf(service.url);
      const { access_token } = await newCustomer(client);
      expect((await redeem(client, await transferToken(client, access_token))).status).toBe(200);
      expect((await client.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
      expect((await client.post(TOKEN, cookieBody())).status).toBe(200);
    });

    it.each([[['purge']], [['registry', 'export']], [['revocation-feed', 'restart']], [['migrate', '--check']]])(
      'the runtime account runs the command %j',
      async (command) => {
        expect(await runCli(command, environment('runtime'))).toMatchObject({ code: 0 });
      },
    );

    it.each(CHANGES_OF_SCHEMA)('the runtime account must not: %s', async (statement) => {
      expect((await attempt(urls.runtime(), [statement]))[0]).toMatch(DENIED);
    });

    it.each(BEYOND_THE_DATABASE)('no account must: %s', async (statement) => {
      for (const url of Object.values(urls)) expect((await attempt(url(), [statement]))[0]).toMatch(DENIED);
    });

    it('the job of an older image ends well: it finds a newer schema and changes nothing', async () => {
      const [code] = await attempt(urls.migration(), [
        "INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'Newer9999999999999')",
      ]);
      expect(code).toBe('done');
      expect(await runCli(['migrate'], environment('migration'))).toMatchObject({ code: 0, stdout: 'up to date\n' });
    });
  });
}
