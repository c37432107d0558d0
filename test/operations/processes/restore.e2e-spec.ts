import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createEmptyDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { type MariadbServer, startMariadb } from '../../../scripts/mariadb.js';
import { MARIADB, MARIADB_BACKUP } from '../../../scripts/programs.js';
import { bearer } from '../../support/authorization-headers.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { shellBlocksOf } from '../../support/page-blocks.js';
import { environmentOf, runScript, type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { PROJECT, read } from '../../support/project-files.js';
import { writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';
import { infoStatus } from '../../support/transfers.js';

/** The blocks of commands of the section, in its order. */
const [FROM_DUMP = '', FROM_FULL_BACKUP = '', FROM_SQLITE = '', BEFORE_THE_START = '', AFTER_THE_START = ''] =
  shellBlocksOf('docs/operations.md', '## Backup and restore');
/** The command of a row of the table of backups. */
const backupCommand = (program: string) =>
  new RegExp(`\`(${program} .*?)\``).exec(read('docs/operations.md'))?.[1] ?? '';

/** A database that is backed up while a service uses it, and restored after further changes. */
interface Rehearsed {
  environment: Record<string, string>;
  cwd: string;
  backUp(): Promise<unknown>;
  restore(): Promise<unknown>;
}

/** Runs commands of the page in a folder. */
const run = (script: string, { cwd, environment }: Pick<Rehearsed, 'cwd' | 'environment'>) =>
  runScript(script, { cwd, env: { PATH: process.env.PATH, ...environment } });

/** Tests that the steps of the page bring back the customers of the backup, and end what came after it. */
async function rehearse(rehearsed: Rehearsed): Promise<void> {
  const { cwd, environment } = rehearsed;
  const start = () => startServiceProcess({ ...environment, MIGRATE_ON_START: 'true' });
  /** A browser, which may have the cookies of another one. */
  const open = (service: ServiceProcess, cookie?: string) =>
    Object.assign(new TestBrowser(httpClientOf(service.url)), { cookie });
  let service = await start();
  const before = open(service);
  const known = (await before.visit()).body;
  await rehearsed.backUp();
  const after = open(service);
  const unknown = (await after.visit()).body;
  const client = httpClientOf(service.url);
  expect((await client.send('DELETE', '/v2/customer/token', bearer(known.access_token))).status).toBe(200);
  await service.terminate();

  await rehearsed.restore();
  expect(await run(BEFORE_THE_START, rehearsed)).toBe('up to date\n');
  expect(JSON.parse(readFileSync(join(cwd, 'keys.json'), 'utf8')).keys).toHaveLength(1);

  service = await start();
  try {
    expect(await run(AFTER_THE_START, rehearsed)).toBe('restarted\n');
    const restored = httpClientOf(service.url);
    for (const { access_token } of [known, unknown]) expect(await infoStatus(restored, access_token)).toBe(401);
    const again = (await open(service, before.cookie).visit()).body;
    expect(again.entity_id).toBe(known.entity_id);
    expect(await infoStatus(restored, again.access_token)).toBe(200);
    expect((await open(service, after.cookie).visit()).body.entity_id).not.toBe(unknown.entity_id);
  } finally {
    await service.terminate();
  }
}

/** A folder with `dist` and the files of a service, in which the commands of the page run. */
async function folderFor(url?: string): Promise<Pick<Rehearsed, 'environment' | 'cwd'>> {
  const database = await createEmptyDatabase();
  const cwd = database.folder;
  symlinkSync(join(PROJECT, 'dist'), join(cwd, 'dist'));
  mkdirSync(join(cwd, 'var'));
  const own = environmentOf({ ...database, url: url ?? `sqlite:${join(cwd, 'var/service.sqlite')}` });
  return { cwd, environment: { ...own, REGISTRY_FILE: writeRegistry(join(cwd, 'registry.yaml')) } };
}

describe('the restore of docs/operations.md on SQLite', () => {
  it('brings back the customers of a copy of the running database, and ends all earlier tokens', async () => {
    const own = await folderFor();
    await rehearse({
      ...own,
      async backUp() {
        const connection = new Database(join(own.cwd, 'var/service.sqlite'));
        connection.exec(`VACUUM INTO '${join(own.cwd, 'service.backup')}'`);
        connection.close();
      },
      restore: () => run(FROM_SQLITE, own),
    });
  });
});

describe.skipIf(!MARIADB.find() || !MARIADB_BACKUP.find())(
  'the restore of docs/operations.md on MariaDB (skipped without mariadb-backup and mariadb-dump)',
  () => {
    let server: MariadbServer;
    beforeEach(async () => {
      server = await startMariadb({ durable: true });
    });
    afterEach(() => server?.stop());

    async function rehearsalOn(): Promise<Pick<Rehearsed, 'environment' | 'cwd'>> {
      const own = await folderFor(await server.createDatabase('service'));
      const { username, password } = new URL(server.url());
      const client = ['[client]', 'host=127.0.0.1', `port=${server.port}`, `user=${username}`, `password=${password}`];
      writeFileSync(join(own.cwd, 'backup.cnf'), `${client.join('\n')}\n`, { mode: 0o600 });
      return own;
    }

    it('brings back the customers of a dump, and ends all earlier tokens', async () => {
      const own = await rehearsalOn();
      await rehearse({
        ...own,
        backUp: () => run(backupCommand('mariadb-dump'), own),
        restore: () => run(FROM_DUMP, own),
      });
    });

    it('brings back the customers of a physical backup, and ends all earlier tokens', async () => {
      const own = await rehearsalOn();
      /** Runs the commands on the private server, which has no systemd and another folder. */
      async function restore(): Promise<void> {
        const user = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim();
        const commands = FROM_FULL_BACKUP.replaceAll('/var/lib/mysql', join(server.dir, 'data')).replaceAll(
          'mysql:',
          `${user}:`,
        );
        const [stop, ...others] = commands.trim().split('\n');
        expect([stop, others.at(-1)]).toEqual(['systemctl stop mariadb', 'systemctl start mariadb']);
        await server.shutDown();
        await run(others.slice(0, -1).join('\n'), own);
        await server.restart();
      }
      await rehearse({ ...own, backUp: () => run(backupCommand('mariadb-backup'), own), restore });
    });
  },
);
