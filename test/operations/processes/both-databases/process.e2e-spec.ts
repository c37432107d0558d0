import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import libsql from 'libsql';
import { beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { readKeySet } from '../../../../src/access-token/key-set.js';
import { claimsOf } from '../../../support/agent-tokens.js';
import { cookieBody, TOKEN } from '../../../support/cookie-grant.js';
import { emptyDatabaseOfTest, useDatabase } from '../../../support/databases.js';
import { expectError } from '../../../support/expect-error.js';
import {
  environmentOf,
  PORTS,
  PRODUCTION,
  runCli,
  runProgram,
  START,
  startServiceProcess,
  TestProcess,
} from '../../../support/processes.js';
import { PROJECT, temporaryFolder } from '../../../support/project-files.js';
import { parseResponses, RawConnection } from '../../../support/raw-http.js';
import { startTcpProxy } from '../../../support/tcp-proxy.js';
import { ACME_SITE, testRegistry, writeRegistry } from '../../../support/test-registry.js';
import { request } from '../../../support/test-service.js';

const MARKER = 'MARKED-value';
const root = temporaryFolder('process-test');
const newFolder = () => mkdtempSync(join(root, 'folder-'));

const requestToken = (url: string) => request(url + TOKEN, { method: 'POST', body: JSON.stringify(cookieBody()) });

describe.skipIf(onMariadb)('protocol §1.5 and §3.16: the first npm start without any configuration', () => {
  it('creates DATA_DIR, a database, a key and a demo registry, and a second start keeps them', async () => {
    const folder = newFolder();
    const DATA_DIR = join(folder, 'new/var');
    const first = await startServiceProcess({ DATA_DIR }, folder, START);
    const createdFiles = ['service.sqlite', 'signing-keys.json', 'demo-registry.yaml'];
    expect(readdirSync(DATA_DIR)).toEqual(expect.arrayContaining(createdFiles));
    for (const secret of createdFiles.slice(1)) expect(statSync(join(DATA_DIR, secret)).mode & 0o777).toBe(0o600);
    expect(first.process.stdout).toMatch(/generated a signing key: .*signing-keys\.json/);

    const lines = await first.process.says(/(curl .*\n(.*\n)*){3}/);
    const [created = '', returning = '', inGroup = ''] = lines[0]
      .split('\n')
      .filter((line) => line.startsWith('curl '));
    const hasCurl = spawnSync('curl', ['--version']).status === 0;
    const runCurl = (line: string) =>
      hasCurl ? JSON.parse(execFileSync('sh', ['-c', line], { cwd: folder, encoding: 'utf8' })).entity_id : undefined;
    const customer = runCurl(created);
    if (hasCurl) expect(customer).toMatch(/^[0-9a-f-]{36}$/);
    expect(runCurl(returning)).toBe(customer);
    if (hasCurl) expect(runCurl(inGroup)).not.toBe(customer);
    const keys = await request(`${first.url}/.well-known/jwks.json`, {});
    const registry = readFileSync(join(DATA_DIR, 'demo-registry.yaml'), 'utf8');
    expect(await first.terminate()).toBe(0);

    const second = await startServiceProcess({ DATA_DIR, PORT: new URL(first.url).port }, folder, START);
    expect((await request(`${second.url}/.well-known/jwks.json`, {})).body).toEqual(keys.body);
    expect(readFileSync(join(DATA_DIR, 'demo-registry.yaml'), 'utf8')).toBe(registry);
    expect(runCurl(created.replace('-c cookies.txt', '-b cookies.txt'))).toBe(customer);
    expect(await second.terminate()).toBe(0);
  });
});

describe.skipIf(onMariadb)('protocol §1.5: node dist/main.js without any configuration', () => {
  it('creates DATA_DIR, a database and a key, and serves an empty registry without the try-it page', async () => {
    const DATA_DIR = join(newFolder(), 'new/var');
    const service = await startServiceProcess({ DATA_DIR, TRY_IT: 'true' });
    expect(readdirSync(DATA_DIR).filter((name) => !name.startsWith('service.sqlite'))).toEqual(['signing-keys.json']);
    expect((await requestToken(service.url)).body).toMatchObject({ error_hint: expect.stringMatching(/^client_id: /) });
    expect((await request(`${service.url}/try`, {})).status).toBe(404);
    expect(await service.terminate()).toBe(0);
  });
});

describe.skipIf(onMariadb)('a start whose SQLite database was lost', () => {
  /** A folder whose service has served, with its signing keys. */
  async function usedFolder(): Promise<string> {
    const DATA_DIR = newFolder();
    await (await startServiceProcess({ DATA_DIR })).terminate();
    for (const name of readdirSync(DATA_DIR)) if (name.startsWith('service.sqlite')) rmSync(join(DATA_DIR, name));
    return DATA_DIR;
  }

  it('exits with 1 if the file is empty, and leaves it as it is', async () => {
    const DATA_DIR = await usedFolder();
    const file = join(DATA_DIR, 'service.sqlite');
    writeFileSync(file, '');
    const message = `the database sqlite:${file} is an empty file; restore a backup, or delete the file for a new database`;
    const { code, stderr } = await TestProcess.start('main.js', [], { ...PORTS, DATA_DIR }).ended;
    expect([code, stderr]).toEqual([1, `${message}\n`]);
    for (const command of [
      ['backup', join(DATA_DIR, 'copy')],
      ['registry', 'apply', writeRegistry(join(DATA_DIR, 'registry.yaml'), testRegistry())],
    ]) {
      const result = await runCli(command, { DATA_DIR });
      expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
    }
    expect(statSync(file).size).toBe(0);
  });

  it('creates a database with a warning if the file is missing and its signing keys exist', async () => {
    const DATA_DIR = await usedFolder();
    const warning = 'does not exist and is created, but its signing keys exist';
    const service = await startServiceProcess({ DATA_DIR });
    expect(await service.terminate()).toBe(0);
    const { stdout, stderr } = service.process;
    expect(stdout + stderr).toContain(warning);
    const first = await startServiceProcess({ DATA_DIR: newFolder() });
    expect(await first.terminate()).toBe(0);
    expect(first.process.stdout + first.process.stderr).not.toContain(warning);
  });
});

describe.skipIf(onMariadb)('protocol §9.4: node dist/main.js with PORT=0', () => {
  it('names the port on which it listens as the issuer, in tokens too, unless AUTH_URL is set', async () => {
    const DATA_DIR = newFolder();
    const REGISTRY_FILE = writeRegistry(join(DATA_DIR, 'r.yaml'));
    for (const [environment, issuerOf] of [
      [{}, (url: string) => `http://localhost:${new URL(url).port}`],
      [{ AUTH_URL: 'https://auth.example' }, () => 'https://auth.example'],
    ] as const) {
      const service = await startServiceProcess({ DATA_DIR, REGISTRY_FILE, ...environment });
      const issuer = issuerOf(service.url);
      const metadata = await request(`${service.url}/.well-known/oauth-authorization-server`, {});
      expect(metadata.body).toMatchObject({ issuer, token_endpoint: expect.stringMatching(`^${issuer}/`) });
      expect(claimsOf((await requestToken(service.url)).body.access_token)).toMatchObject({ iss: issuer });
      expect(service.process.stdout).not.toContain('localhost:0');
      expect(await service.terminate()).toBe(0);
    }
  });

  it('is a violation for a command that issues tokens, because no process has chosen a port', async () => {
    const parameters = ['agent-token', '--email', 'x', '--client-id', 'x'];
    const { code, stderr } = await runCli(parameters, { DATA_DIR: newFolder(), PORT: '0' });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('AUTH_URL: required with PORT=0') });
  });
});

describe.skipIf(onMariadb)('files and folders that a process creates', () => {
  /** The modes of a folder and of everything in it. */
  const modesIn = (folder: string) => {
    const paths = [
      folder,
      ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    ];
    return Object.fromEntries(paths.map((path) => [relative(folder, path), (statSync(path).mode & 0o777).toString(8)]));
  };
  const withUmask = (umask: string, parameters: string[], environment: Record<string, string>) =>
    TestProcess.spawn(
      'sh',
      ['-c', `umask ${umask}; exec "$0" "$@"`, process.execPath, ...parameters],
      { PATH: process.env.PATH, ...PORTS, ...environment },
      newFolder(),
    );
  const CLI = join(PROJECT, 'dist/cli.js');

  it.each(['000', '277'])('are for its user only, also with the umask %s', async (umask) => {
    const folder = newFolder();
    const DATA_DIR = join(folder, 'new/var');
    const service = withUmask(umask, [START], { DATA_DIR });
    await service.says(/port \d+ for callers/);
    expect(modesIn(join(folder, 'new'))).toEqual({
      ...{ '': '700', var: '700', 'var/service.sqlite': '600', 'var/service.sqlite-wal': '600' },
      ...{ 'var/service.sqlite-shm': '600', 'var/signing-keys.json': '600', 'var/demo-registry.yaml': '600' },
      'var/npm-start.pid': '600',
    });
    const backup = join(folder, 'backup.sqlite');
    expect(await withUmask(umask, [CLI, 'backup', backup], { DATA_DIR }).ended).toMatchObject({ code: 0 });
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    service.signal('SIGKILL');
    await service.ended;
  });

  it('are for its user only if a command creates the database, and a folder that exists keeps its mode', async () => {
    const folder = newFolder();
    for (const [name, mode] of [
      ['new', '700'],
      ['existing', '755'],
    ] as const) {
      const DATA_DIR = join(folder, name);
      if (name === 'existing') {
        mkdirSync(DATA_DIR);
        chmodSync(DATA_DIR, 0o755);
      }
      expect(await withUmask('000', [CLI, 'migrate'], { DATA_DIR }).ended).toMatchObject({ code: 0 });
      expect(modesIn(DATA_DIR)).toMatchObject({ '': mode, 'service.sqlite': '600' });
    }
  });
});

describe.skipIf(onMariadb)('protocol §1.5: a process that gets SIGTERM', () => {
  it('finishes begun requests, accepts no new ones, and exits with 0 in spite of idle connections', async () => {
    const DATA_DIR = newFolder();
    const service = await startServiceProcess({ DATA_DIR, REGISTRY_FILE: writeRegistry(join(DATA_DIR, 'r.yaml')) });
    const body = JSON.stringify(cookieBody());
    const head = (target: string, length: number) =>
      `${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
    const pending = await RawConnection.open(service.url);
    pending.send(head(`POST ${TOKEN}`, body.length) + body.slice(0, 9));
    for (const [url, path] of [
      [service.url, '/.well-known/jwks.json'],
      [service.managementUrl, '/health/live'],
    ] as const) {
      await RawConnection.open(url); // a connection without a request
      const idle = (await RawConnection.open(url)).send(head(`GET ${path}`, 0)); // idle after its response
      await expect.poll(() => idle.receivedSoFar).toContain('HTTP/1.1 200 OK');
    }

    // For 2 s, until the cluster has noticed that the process is not ready, the process accepts requests. The test
    // sends its requests together, so that they fit into this time on a slow machine.
    const sendBoth = () =>
      Promise.all([request(`${service.managementUrl}/health/ready`, {}), requestToken(service.url)]);
    service.process.signal('SIGTERM');
    let [ready, token] = await sendBoth();
    while (ready.status === 200 || token.headers.get('connection') !== 'close') [ready, token] = await sendBoth();
    expectError(ready, { status: 503, error: 'temporarily_unavailable', hint: undefined });
    expect(token.status).toBe(200);
    const accepted = () =>
      requestToken(service.url).then(
        () => true,
        () => false,
      );
    await expect.poll(accepted).toBe(false);
    expect(service.process.code).toBeNull();

    pending.send(body.slice(9));
    const response = await pending.response();
    expect({ status: response.status, cookies: response.cookies.length }).toEqual({ status: 200, cookies: 2 });
    expect((await service.process.ended).code).toBe(0);
  });

  it('keeps idle connections while it still serves, although other requests end', async () => {
    const DATA_DIR = newFolder();
    const service = await startServiceProcess({ DATA_DIR, REGISTRY_FILE: writeRegistry(join(DATA_DIR, 'r.yaml')) });
    const keys = 'GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n';
    const idle = (await RawConnection.open(service.url)).send(keys);
    await expect.poll(() => idle.receivedSoFar).toContain('HTTP/1.1 200 OK');

    service.process.signal('SIGTERM');
    let ended = await requestToken(service.url);
    while (ended.headers.get('connection') !== 'close') ended = await requestToken(service.url);
    const responses = parseResponses(await idle.send(keys).received());
    expect(responses.map(({ status, headers }) => [status, headers.get('connection')])).toEqual([
      [200, 'keep-alive'],
      [200, 'close'],
    ]);
    expect((await service.process.ended).code).toBe(0);
  });
});

describe.skipIf(onMariadb).concurrent('protocol §9.4: the configuration check at the start', () => {
  const startFailure = async (environment: Record<string, string>) => {
    const ended = await TestProcess.start('main.js', [], { ...PORTS, DATA_DIR: newFolder(), ...environment }).ended;
    expect(ended.code).toBe(1);
    expect(ended.stdout).not.toContain('listening on');
    expect(ended.stdout + ended.stderr).not.toContain(MARKER);
    return ended.stderr;
  };

  it('ends the process before it listens, and names every invalid variable and its rule, but no value', async () => {
    const message = await startFailure({ DATABASE_URL: `postgres://${MARKER}`, PORT: MARKER, LOG_LEVEL: MARKER });
    for (const name of ['DATABASE_URL', 'PORT', 'LOG_LEVEL'])
      expect(message).toMatch(new RegExp(`^ +${name}: must .+$`, 'm'));
  });

  it.each([
    ['DATABASE_URL', `mysql://user:1#${MARKER}@db.example/service`],
    ['DATABASE_URL_FILE', `mysql://user:x@${MARKER}@db.example/service`],
  ])('shows no part of a password with an unencoded # or @, which would otherwise be a host: %s', async (name, url) => {
    const folder = newFolder();
    const file = join(folder, 'url');
    writeFileSync(file, `${url}\n`);
    const SIGNING_KEYS_FILE = join(folder, 'keys.json');
    const message = await startFailure({ SIGNING_KEYS_FILE, [name]: name === 'DATABASE_URL' ? url : file });
    expect(message).toMatch(/^ +DATABASE_URL: must be sqlite:PATH, mysql:/m);
    expect(message).not.toContain('db.example');
  });

  it('warns of a variable whose name is misspelled, in a command too', async () => {
    const DATA_DIR = newFolder();
    const warning = /COOKIE_DOMAINS: not a variable of the service; COOKIE_DOMAIN is/;
    const service = await startServiceProcess({ DATA_DIR, COOKIE_DOMAINS: MARKER });
    await service.process.says(warning);
    expect(service.process.stdout).not.toContain(MARKER);
    expect(await service.terminate()).toBe(0);
    const { code, stderr } = await runCli(['migrate'], { DATA_DIR, COOKIE_DOMAINS: MARKER });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(warning) });
    expect(stderr).not.toContain(MARKER);
  });

  it.each(['PORT', 'MANAGEMENT_PORT'])('reports in one line that %s is in use', async (name) => {
    const other = await startTcpProxy('tcp://127.0.0.1:1');
    try {
      expect(await startFailure({ [name]: String(other.port) })).toMatch(
        new RegExp(`^${name}: .*EADDRINUSE.*:${other.port}$`, 'm'),
      );
    } finally {
      await other.close();
    }
  });

  it('accepts values from files in production', async () => {
    const DATA_DIR = newFolder();
    const TOKEN_REGION_FILE = join(DATA_DIR, 'region');
    writeFileSync(TOKEN_REGION_FILE, 'eu-west\n');
    const REGISTRY_FILE = writeRegistry(join(DATA_DIR, 'r.yaml'));
    expect((await runCli(['registry', 'apply', REGISTRY_FILE], { DATA_DIR })).code).toBe(0);
    const service = await startServiceProcess({ DATA_DIR, TOKEN_REGION_FILE, ...PRODUCTION });
    expect((await requestToken(service.url)).body.access_token).toMatch(/^eu-west:/);
    expect(await service.terminate()).toBe(0);
    expect(service.process.stdout).not.toContain('TOKEN_REGION');
  });

  it('logs a warning in production if all tokens begin with the default region', async () => {
    const service = await startServiceProcess({ DATA_DIR: newFolder(), ...PRODUCTION });
    await service.process.says(/"level":"warn".*TOKEN_REGION: all tokens begin with dev:/);
    expect(await service.terminate()).toBe(0);
  });
});

describe.skipIf(onMariadb).concurrent('protocol §9.3: the command line', () => {
  it.each(['', '__proto__', 'keys generate more', 'migrate --unknown', 'registry apply'])(
    'exits with 2 and prints the usage on stderr after a usage error: %j',
    async (line) => {
      const { code, stdout, stderr } = await runCli(line.split(' ').filter(Boolean));
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^usage: node dist\/cli\.js COMMAND$/m);
    },
  );

  it('prints a private key set for keys generate, even if the environment is invalid', async () => {
    const { code, stdout, stderr } = await runCli(['keys', 'generate'], { DATABASE_URL: MARKER, PORT: MARKER });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(readKeySet(stdout)).toHaveLength(1);
    expect(JSON.parse(stdout).keys[0].nbf).toBeLessThanOrEqual(Date.now() / 1000);
  });
});

describe.skipIf(onMariadb)('protocol §9.3: commands on a database', () => {
  const folder = newFolder();
  const database = useDatabase();
  let environment: Record<string, string>;
  beforeAll(() => {
    writeFileSync(database.url.slice('sqlite:'.length), ''); // SQLite reads an empty file as a database without tables
    environment = environmentOf(database);
  });

  const cli = (...parameters: string[]) => runCli(parameters, environment);
  const apply = (registry: object) => cli('registry', 'apply', writeRegistry(join(folder, 'registry.yaml'), registry));

  it('migrate --check exits with 1 until migrate has run, and a second migrate does nothing', async () => {
    expect(await cli('migrate', '--check')).toMatchObject({ code: 1, stdout: 'migrations are pending\n' });
    expect(await cli('migrate')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(migrated: \w+\n)+$/) });
    for (const second of await Promise.all([cli('migrate', '--check'), cli('migrate')])) {
      expect(second).toMatchObject({ code: 0, stdout: 'up to date\n', stderr: '' });
    }
  });

  it('registry apply prints what it created, changed and left unchanged', async () => {
    const registry = testRegistry();
    const entries = Object.values(registry).flat().length;
    const first = await apply(registry);
    expect(first.code).toBe(0);
    const audited = first.stderr.trim().split('\n');
    expect(audited).toHaveLength(entries);
    for (const line of audited) expect(line).toContain('"event":"registry.changed"');
    expect(first.stdout.match(/^created: /gm)).toHaveLength(entries);

    Object.assign(registry.clients[0] as object, { name: 'Acme, renamed' });
    registry.clients.push({ client_id: 'acme-new', name: 'New', client_type: 'web' });
    const { stdout } = await apply(registry);
    expect(stdout.match(/^unchanged: /gm)).toHaveLength(entries - 1);
    const changes = stdout.split('\n').filter((line) => line && !line.startsWith('unchanged: '));
    expect(changes).toEqual([`changed: client ${ACME_SITE}`, 'created: client acme-new']);
  });

  it('registry apply --dry-run exits with 2 if something would change, and with 0 otherwise', async () => {
    const path = writeRegistry(join(folder, 'dry-run.yaml'), {
      clients: [{ client_id: 'acme-new', name: 'Newer', client_type: 'web' }],
    });
    const dryRun = { code: 2, stdout: 'changed: client acme-new\n' };
    expect(await cli('registry', 'apply', '--dry-run', path)).toMatchObject(dryRun);
    expect(await cli('registry', 'apply', path)).toMatchObject({ ...dryRun, code: 0 });
    expect(await cli('registry', 'apply', '--dry-run', path)).toMatchObject({ code: 0, stdout: '' });
  });

  /** With a text as standard input, which is no token. */
  const withInput = (command: string, env: Record<string, string>) =>
    runProgram(process.execPath, [join(PROJECT, 'dist/cli.js'), ...command.split(' ')], { env, input: 'x' });

  it.each([
    ['registry export', { code: 0, stdout: expect.stringContaining(ACME_SITE) }],
    ['token explain', { code: 1, stdout: expect.stringContaining('unknown text') }],
  ])('%s reads the database and writes nothing', async (command, result) => {
    const file = database.url.slice('sqlite:'.length);
    const before = readFileSync(file);
    expect(await withInput(command, environment)).toMatchObject(result);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it.each(['registry export', 'token explain', 'agent-token --email x --client-id x'])(
    '%s does not migrate the database',
    async (command) => {
      const DATA_DIR = newFolder();
      const older = new libsql(join(DATA_DIR, 'service.sqlite'));
      older.exec('CREATE TABLE other (id INTEGER)');
      older.close();
      const pending = { code: 1, stdout: '', stderr: 'migrations are pending; run: node dist/cli.js migrate\n' };
      expect(await withInput(command, { DATA_DIR })).toEqual(pending);
      expect(readdirSync(DATA_DIR)).not.toContain('signing-keys.json');
      expect((await runCli(['migrate', '--check'], { DATA_DIR })).code).toBe(1);
    },
  );

  it('registry check needs no database and creates none, and exits with 1 after the violations of a file', async () => {
    const DATA_DIR = newFolder();
    const check = (path: string) => runCli(['registry', 'check', path], { DATA_DIR });
    const valid = { code: 0, stdout: 'the registry file is valid\n', stderr: '' };
    expect(await check(writeRegistry(join(folder, 'valid.yaml'), testRegistry()))).toMatchObject(valid);
    const invalid = writeRegistry(join(folder, 'invalid.yaml'), { clients: [{ client_id: 'a b' }] });
    const { code, stdout, stderr } = await check(invalid);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    for (const field of ['client_id', 'name', 'client_type']) expect(stderr).toContain(`clients[0].${field}: `);
    expect(readdirSync(DATA_DIR)).toEqual([]);
  });
});

describe('processes on an empty database', () => {
  const REGISTRY_FILE = writeRegistry(join(root, 'registry.yaml'));

  it('that migrate at the same time run each migration once, and all exit with 0', async () => {
    const environment = environmentOf(await emptyDatabaseOfTest());
    const ended = await Promise.all(Array.from({ length: 3 }, () => runCli(['migrate'], environment)));
    expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ended.map(() => ({ code: 0, stderr: '' })));
    const migrated = ended.flatMap(({ stdout }) => stdout.match(/^migrated: .*$/gm) ?? []);
    expect(migrated.length).toBeGreaterThan(0);
    expect(new Set(migrated).size).toBe(migrated.length);
    expect((await runCli(['migrate', '--check'], environment)).code).toBe(0);
  });

  it.runIf(onMariadb)('that start at the same time with one REGISTRY_FILE all serve', async () => {
    const environment = environmentOf(await emptyDatabaseOfTest());
    const start = () => startServiceProcess({ ...environment, MIGRATE_ON_START: 'true', REGISTRY_FILE });
    const services = await Promise.all([start(), start(), start()]);
    for (const { url } of services) expect((await requestToken(url)).status).toBe(200);
    expect(await Promise.all(services.map((service) => service.terminate()))).toEqual([0, 0, 0]);
  });

  it.runIf(onMariadb)('that start before the migrations wait for them', async () => {
    const environment = environmentOf(await emptyDatabaseOfTest());
    const starting = TestProcess.start('main.js', [], { ...PORTS, ...environment });
    await starting.says(/migrations are pending; run: node dist\/cli\.js migrate/);
    expect((await runCli(['migrate'], environment)).code).toBe(0);
    expect((await runCli(['registry', 'apply', REGISTRY_FILE], environment)).code).toBe(0);
    const [, port] = await starting.says(/port (\d+) for callers/);
    await expect.poll(async () => (await requestToken(`http://127.0.0.1:${port}`)).status).toBe(200);
    expect((await requestToken(`http://127.0.0.1:${port}`)).status).toBe(200);
    starting.signal('SIGTERM');
    expect((await starting.ended).code).toBe(0);
  });

  it.runIf(onMariadb)('that run a command while migrations are pending say so, and end with exit code 1', async () => {
    const { code, stdout, stderr } = await runCli(['purge'], environmentOf(await emptyDatabaseOfTest()));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('migrations are pending; run: node dist/cli.js migrate');
  });

  it.runIf(onMariadb)(
    'wait in migrate and at the start for an unreachable database, but fail in other commands',
    async () => {
      const database = await emptyDatabaseOfTest();
      const proxy = await startTcpProxy(database.url);
      await proxy.cut();
      const unreachable = { ...environmentOf(database), DATABASE_URL: proxy.through(database.url) };
      const exporting = runCli(['registry', 'export'], unreachable);
      const migrating = TestProcess.start('cli.js', ['migrate'], unreachable);
      const starting = TestProcess.start('main.js', [], { ...PORTS, ...unreachable });
      const { code, stdout, stderr } = await exporting;
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/ECONNREFUSED/);
      expect(stderr).not.toContain(new URL(database.url).password);
      await starting.says(/tries again/);
      starting.signal('SIGTERM');
      expect(await starting.ended).toMatchObject({ code: 0, stdout: expect.not.stringContaining('listening on') });
      await migrating.says(/tries again/, 'stderr');
      await proxy.restore();
      expect(await migrating.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(migrated: \w+\n)+$/) });
      expect(migrating.stderr).toContain('the start goes on');
      await proxy.close();
    },
  );
});
