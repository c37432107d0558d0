import { join } from 'node:path';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { expect, it, onTestFinished } from 'vitest';
import { writeKeySet } from '../../../../packages/conformance-kit/src/key-set-file.js';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { startMariadb } from '../../../../scripts/mariadb.js';
import { findMariadb } from '../../../../scripts/programs.js';
import { bearer } from '../../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../../support/cookie-grant.js';
import { runCli, startServiceProcess } from '../../../support/processes.js';
import { temporaryFolder } from '../../../support/project-files.js';
import { testRegistry, writeRegistry } from '../../../support/test-registry.js';
import { httpClientOf } from '../../../support/test-service.js';
import { infoStatus } from '../../../support/transfers.js';

const itOnMariadb = it.skipIf(!onMariadb || !findMariadb());
const folder = temporaryFolder('server-settings');

async function startServer(...extra: string[]) {
  const server = await startMariadb({ extra });
  onTestFinished(() => server.stop());
  const url = await server.createDatabase('service');
  const administrator = await mysql.createConnection(url.replace(/^\w+/, 'mysql'));
  onTestFinished(() => administrator.destroy());
  const SIGNING_KEYS_FILE = join(folder, 'keys.json');
  writeKeySet(SIGNING_KEYS_FILE);
  return { administrator, environment: { DATABASE_URL: url, DATA_DIR: folder, SIGNING_KEYS_FILE } };
}

itOnMariadb('names are stored as they are by a server that overrides the character set of its clients', async () => {
  const { administrator, environment } = await startServer(
    '--skip-character-set-client-handshake',
    '--character-set-server=latin1',
    '--collation-server=latin1_swedish_ci',
  );
  const registry = testRegistry();
  const name = 'Zürich 漢字 😀';
  Object.assign(registry.organizations[0] as object, { name });
  expect(await runCli(['migrate'], environment)).toMatchObject({ code: 0 });
  const file = writeRegistry(join(folder, 'registry.yaml'), registry);
  expect(await runCli(['registry', 'apply', file], environment)).toMatchObject({ code: 0 });
  await administrator.query('SET NAMES utf8mb4');
  const [rows] = await administrator.query('SELECT name FROM organization WHERE name = ?', [name]);
  expect(rows).toEqual([{ name }]);
});

itOnMariadb('a server with binlog_format=STATEMENT is refused with the setting that it needs', async () => {
  const { environment } = await startServer('--log-bin', '--binlog-format=STATEMENT', '--server-id=1');
  const { code, stderr } = await runCli(['migrate'], environment);
  expect(code).toBe(1);
  expect(stderr).toContain('the database server has binlog_format=STATEMENT; the service needs ROW or MIXED');
});

itOnMariadb('a server whose default row format is COMPACT is refused with the message of the server', async () => {
  const { environment } = await startServer('--innodb-default-row-format=compact');
  const { code, stderr } = await runCli(['migrate'], environment);
  expect(code).toBe(1);
  expect(stderr).toContain('Index column size too large. The maximum column size is 767 bytes');
});

itOnMariadb('the isolation, time zone, SQL mode and idle limit of the server do not matter', async () => {
  const { administrator, environment } = await startServer(
    ...['--transaction-isolation=SERIALIZABLE', '--default-time-zone=+05:30', '--autocommit=0', '--wait-timeout=1'],
    ...['--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES', '--innodb-force-primary-key=ON', '--lower-case-table-names=1'],
  );
  await administrator.query('SET SESSION wait_timeout = 600');
  const REGISTRY_FILE = writeRegistry(join(folder, 'registry.yaml'));
  const service = await startServiceProcess({ ...environment, REGISTRY_FILE, MIGRATE_ON_START: 'true' });
  onTestFinished(() => service.process.signal('SIGKILL'));
  const client = httpClientOf(service.url);
  const first = await client.post(TOKEN, cookieBody());
  const connections = async () =>
    (
      await administrator.query<RowDataPacket[]>("SELECT id FROM information_schema.processlist WHERE db = 'service'")
    )[0];
  // each transaction needs a connection of its own, so that some are idle afterwards
  const visitors = await Promise.all(Array.from({ length: 8 }, () => client.post(TOKEN, cookieBody())));
  const ended = visitors.map(({ body }) => client.post('/v2/customer/end_sessions', {}, bearer(body.access_token)));
  for (const { status } of await Promise.all(ended)) expect(status).toBe(200);
  const ids = (await connections()).map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(2);
  // the server has closed one of the idle connections
  await expect
    .poll(async () => (await connections()).filter(({ id }) => ids.includes(id)).length)
    .toBeLessThan(ids.length);
  const again = await client.post(TOKEN, cookieBody(), { cookie: cookieHeader(first) });
  expect([again.status, again.body.entity_id]).toEqual([200, first.body.entity_id]);
  expect(await infoStatus(client, first.body.access_token)).toBe(200);
  expect(await service.terminate()).toBe(0);
});

itOnMariadb(
  'an account with another authentication plugin is refused with the plugins that are supported',
  async () => {
    const { administrator, environment } = await startServer();
    await administrator.query("INSTALL SONAME 'auth_ed25519'");
    await administrator.query("CREATE USER 'modern'@'%' IDENTIFIED VIA ed25519 USING PASSWORD('a-password')");
    const DATABASE_URL = Object.assign(new URL(environment.DATABASE_URL), {
      username: 'modern',
      password: 'a-password',
    });
    const { code, stderr } = await runCli(['registry', 'export'], { ...environment, DATABASE_URL: DATABASE_URL.href });
    expect(code).toBe(1);
    expect(stderr).toContain(
      'the database account has the authentication plugin client_ed25519; the service supports mysql_native_password,',
    );
  },
);
