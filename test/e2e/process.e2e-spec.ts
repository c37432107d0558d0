import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readKeySet } from '../../src/access-token/key-set.js';
import { createTestDatabase, onMariadb, type TestDatabase } from '../../src/testing/test-database.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { environmentOf, PORTS, runCli, startServiceProcess, TestProcess } from '../support/processes.js';
import { RawConnection } from '../support/raw-http.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { ACME, ACME_AGENT, ACME_SITE, BACKEND_SECRET, testRegistry, writeRegistry } from '../support/test-registry.js';
import { request } from '../support/test-service.js';

/** Starting a process takes a second of a core, and other tests want it too. */
const SLOW = { timeout: 90_000 };
const MARK = 'MARKED-value';
const root = mkdtempSync(join(tmpdir(), 'process-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const newFolder = () => mkdtempSync(join(root, 'folder-'));

const requestToken = (url: string) => request(url + TOKEN, { method: 'POST', body: JSON.stringify(cookieBody()) });

describe.skipIf(onMariadb)('protocol §1.5 and §3.16: a first start, with nothing set up', () => {
  it('makes DATA_DIR, a database, a key and a demo registry; a second start keeps them', async () => {
    const folder = newFolder();
    const DATA_DIR = join(folder, 'new/var');
    const first = await startServiceProcess({ DATA_DIR }, folder);
    const made = ['service.sqlite', 'signing-keys.json', 'demo-registry.yaml'];
    expect(readdirSync(DATA_DIR)).toEqual(expect.arrayContaining(made));
    for (const secret of made.slice(1)) expect(statSync(join(DATA_DIR, secret)).mode & 0o777).toBe(0o600);
    expect(first.process.stdout).toMatch(/generated a signing key: .*signing-keys\.json/);

    const lines = await first.process.says(/(curl .*\n(.*\n)*){3}/);
    const [created = '', returning = '', inGroup = ''] = lines[0]
      .split('\n')
      .filter((line) => line.startsWith('curl '));
    const hasCurl = spawnSync('curl', ['--version']).status === 0;
    const paste = (line: string) =>
      hasCurl ? JSON.parse(execFileSync('sh', ['-c', line], { cwd: folder, encoding: 'utf8' })).entity_id : undefined;
    const customer = paste(created);
    if (hasCurl) expect(customer).toMatch(/^[0-9a-f-]{36}$/);
    expect(paste(returning)).toBe(customer);
    if (hasCurl) expect(paste(inGroup)).not.toBe(customer);
    const keys = await request(`${first.url}/.well-known/jwks.json`, {});
    const registry = readFileSync(join(DATA_DIR, 'demo-registry.yaml'), 'utf8');
    expect(await first.terminate()).toBe(0);

    const second = await startServiceProcess({ DATA_DIR, PORT: new URL(first.url).port }, folder);
    expect((await request(`${second.url}/.well-known/jwks.json`, {})).body).toEqual(keys.body);
    expect(readFileSync(join(DATA_DIR, 'demo-registry.yaml'), 'utf8')).toBe(registry);
    expect(paste(created.replace('-c cookies.txt', '-b cookies.txt'))).toBe(customer);
    expect(await second.terminate()).toBe(0);
  });
});

describe.skipIf(onMariadb)('protocol §1.5: an end', SLOW, () => {
  it('SIGTERM: what has begun is answered, nothing new is taken, idle connections do not hold it up, exit 0', async () => {
    const DATA_DIR = newFolder();
    const service = await startServiceProcess({ DATA_DIR, REGISTRY_FILE: writeRegistry(join(DATA_DIR, 'r.yaml')) });
    const body = JSON.stringify(cookieBody());
    const head = (target: string, length: number) =>
      `${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
    const begun = await RawConnection.open(service.url);
    begun.send(head(`POST ${TOKEN}`, body.length) + body.slice(0, 9));
    for (const [url, path] of [
      [service.url, '/.well-known/jwks.json'],
      [service.managementUrl, '/health/live'],
    ] as const) {
      await RawConnection.open(url); // opened in advance
      (await RawConnection.open(url)).send(head(`GET ${path}`, 0)); // kept alive
    }
    await sleep(300);
    const start = Date.now();
    service.process.signal('SIGTERM');

    const ready = () => request(`${service.managementUrl}/health/ready`, {});
    await expect.poll(async () => (await ready()).status, { timeout: 5_000 }).toBe(503);
    expectError(await ready(), { status: 503, error: 'temporarily_unavailable', hint: undefined });
    // for a while, until the cluster knows; then nothing new is taken
    expect((await requestToken(service.url)).headers.get('connection')).toBe('close');
    const taken = () =>
      requestToken(service.url).then(
        () => true,
        () => false,
      );
    await expect.poll(taken, { timeout: 5_000 }).toBe(false);
    expect(service.process.code).toBeNull();

    begun.send(body.slice(9));
    const answer = await begun.answer();
    expect({ status: answer.status, cookies: answer.cookies.length }).toEqual({ status: 200, cookies: 2 });
    expect((await service.process.ended).code).toBe(0);
    expect(Date.now() - start).toBeLessThan(7_500);
  });
});

describe
  .skipIf(onMariadb)
  .concurrent('protocol §9.4: a wrong configuration ends the process before it listens', SLOW, () => {
    const refused = async (environment: Record<string, string>) => {
      const ended = await TestProcess.start('main.js', [], { ...PORTS, DATA_DIR: newFolder(), ...environment }).ended;
      expect(ended.code).toBe(1);
      expect(ended.stdout).not.toContain('listening on');
      expect(ended.stdout + ended.stderr).not.toContain(MARK);
      return ended.stderr;
    };

    it('naming every fault by its variable and rule, never by its value', async () => {
      const message = await refused({
        DATABASE_URL: `postgres://${MARK}`,
        PORT: MARK,
        MANAGEMENT_PORT: '70000',
        AUTH_URL: `https://auth.example/${MARK}/`,
        MIGRATE_ON_START: MARK,
        TOKEN_REGION: `${MARK}:`,
        COOKIE_PREFIX: `${MARK};`,
        CUSTOMER_TOKEN_TTL: '-1',
        LOG_LEVEL: MARK,
      });
      const names = ['DATABASE_URL', 'PORT', 'MANAGEMENT_PORT', 'AUTH_URL', 'MIGRATE_ON_START', 'TOKEN_REGION'];
      for (const name of [...names, 'COOKIE_PREFIX', 'CUSTOMER_TOKEN_TTL', 'LOG_LEVEL']) {
        expect(message).toMatch(new RegExp(`^ +${name}: must .+$`, 'm'));
      }
    });

    it('also of a value in a file, of a file that cannot be read, and of a value given in both ways', async () => {
      const file = join(newFolder(), 'value');
      writeFileSync(file, `${MARK}:\n`);
      const both = { LOG_LEVEL: 'info', LOG_LEVEL_FILE: file };
      const message = await refused({ TOKEN_REGION_FILE: file, AUTH_URL_FILE: `/${MARK}`, ...both });
      expect(message).toMatch(/^ +TOKEN_REGION: must /m);
      expect(message).toMatch(/^ +AUTH_URL_FILE: the file cannot be read$/m);
      expect(message).toMatch(/^ +LOG_LEVEL: given twice/m);
    });

    it('MySQL without SIGNING_KEYS_FILE: naming the command that makes one', async () => {
      const message = await refused({ DATABASE_URL: `mysql://user:${MARK}@127.0.0.1:1/db` });
      expect(message).toMatch(/^ +SIGNING_KEYS_FILE: .*node dist\/cli\.js keys generate/m);
    });

    it.each([
      ['is not there', undefined, /SIGNING_KEYS_FILE: the file cannot be read/],
      [
        'has no key of ours',
        `{"keys":[{"kty":"RSA","d":"${MARK}"}]}`,
        /SIGNING_KEYS_FILE: keys\[0\]: must be an EC key/,
      ],
    ])('a SIGNING_KEYS_FILE that %s', async (_what, content, expected) => {
      const SIGNING_KEYS_FILE = join(newFolder(), `${MARK}.json`);
      if (content !== undefined) writeFileSync(SIGNING_KEYS_FILE, content);
      expect(await refused({ SIGNING_KEYS_FILE })).toMatch(expected);
    });

    it('a registry that is refused, with every fault', async () => {
      const REGISTRY_FILE = join(newFolder(), 'registry.yaml');
      writeFileSync(
        REGISTRY_FILE,
        `organizations: [{ id: ${MARK}, name: A }]\nclients: [{ client_secret: ${MARK} }]\n`,
      );
      const message = await refused({ REGISTRY_FILE });
      for (const path of ['organizations[0].id', 'clients[0].client_id', 'clients[0].name', 'clients[0].client_type']) {
        expect(message).toContain(`${path}: `);
      }
    });

    it.each(['PORT', 'MANAGEMENT_PORT'])('%s in use: one line that says so', async (name) => {
      const other = await startTcpProxy('tcp://127.0.0.1:1');
      try {
        expect(await refused({ [name]: String(other.port) })).toMatch(
          new RegExp(`^.*EADDRINUSE.*:${other.port}$`, 'm'),
        );
      } finally {
        await other.close();
      }
    });

    it('while a value in a file counts like one in the environment, and production has no demo registry', async () => {
      const DATA_DIR = newFolder();
      const TOKEN_REGION_FILE = join(DATA_DIR, 'region');
      writeFileSync(TOKEN_REGION_FILE, 'eu-west\n');
      const REGISTRY_FILE = writeRegistry(join(DATA_DIR, 'r.yaml'));
      expect((await runCli(['registry', 'apply', REGISTRY_FILE], { DATA_DIR })).code).toBe(0);
      const service = await startServiceProcess({ DATA_DIR, TOKEN_REGION_FILE, NODE_ENV: 'production' });
      expect((await requestToken(service.url)).body.access_token).toMatch(/^eu-west:/);
      expect(service.process.stdout).not.toContain('demo');
      expect(readdirSync(DATA_DIR)).not.toContain('demo-registry.yaml');
      expect(await service.terminate()).toBe(0);
    });
  });

describe.skipIf(onMariadb).concurrent('protocol §9.3: the command line', SLOW, () => {
  it.each(['', '__proto__', 'keys generate more', 'migrate --unknown', 'registry apply'])(
    'a wrong use exits with 2 and prints the usage on stderr: %j',
    async (line) => {
      const { code, stdout, stderr } = await runCli(line.split(' ').filter(Boolean));
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^usage: node dist\/cli\.js COMMAND$/m);
    },
  );

  it('keys generate: prints a private key set, whatever the environment', async () => {
    const { code, stdout, stderr } = await runCli(['keys', 'generate'], { DATABASE_URL: MARK, PORT: MARK });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(readKeySet(stdout)).toHaveLength(1);
    expect(JSON.parse(stdout).keys[0].nbf).toBeLessThanOrEqual(Date.now() / 1000);
  });

  it('a command too refuses a wrong configuration: exit 1, by name, never by value', async () => {
    const { code, stdout, stderr } = await runCli(['registry', 'export'], { DATABASE_URL: MARK, LOG_LEVEL: MARK });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/DATABASE_URL: (.*\n)*.*LOG_LEVEL: /);
    expect(stderr).not.toContain(MARK);
  });
});

describe.skipIf(onMariadb)('protocol §9.3: commands on a database', SLOW, () => {
  const folder = newFolder();
  let database: TestDatabase;
  let environment: Record<string, string>;
  beforeAll(async () => {
    database = await createTestDatabase();
    environment = environmentOf(database);
  });
  afterAll(() => database.remove());

  const cli = (...parameters: string[]) => runCli(parameters, environment);
  const apply = (registry: object, name = 'registry.yaml') =>
    cli('registry', 'apply', writeRegistry(join(folder, name), registry));
  let exported = '';

  it('migrate --check exits with 1 while migrations are pending, migrate makes it 0; the second time does nothing', async () => {
    expect(await cli('migrate', '--check')).toMatchObject({ code: 1, stdout: 'migrations are pending\n' });
    expect(await cli('migrate')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(migrated: \w+\n)+$/) });
    for (const again of await Promise.all([cli('migrate', '--check'), cli('migrate')])) {
      expect(again).toMatchObject({ code: 0, stdout: 'up to date\n', stderr: '' });
    }
  });

  it('registry apply tells what it created, changed and left', async () => {
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
    expect(stdout.match(/^left: /gm)).toHaveLength(entries - 1);
    const others = stdout.split('\n').filter((line) => line && !line.startsWith('left: '));
    expect(others).toEqual([`changed: client ${ACME_SITE}`, 'created: client acme-new']);
  });

  it('registry export prints what registry apply takes and then leaves, without a secret', async () => {
    const first = await cli('registry', 'export');
    exported = first.stdout;
    expect(first).toMatchObject({ code: 0, stderr: '' });
    for (const secret of [BACKEND_SECRET, ACME_AGENT.password, '$argon2id', 'secret', 'hash']) {
      expect(exported).not.toContain(secret);
    }
    writeFileSync(join(folder, 'exported.yaml'), exported);
    const applied = await cli('registry', 'apply', join(folder, 'exported.yaml'));
    expect(applied).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^(left: .+\n){10,}$/) });
  });

  it('a faulty file is refused whole, every fault named with its path, and nothing is changed', async () => {
    const faulty = {
      organizations: [
        { id: ACME, name: 'Renamed' },
        { id: MARK, name: 'New' },
      ],
      clients: [{ client_id: 'new', name: 'New', client_type: MARK, client_secret: MARK, surprise: MARK }],
    };
    const [refused, missing] = await Promise.all([
      apply(faulty, 'faulty.yaml'),
      cli('registry', 'apply', join(folder, 'nothing.yaml')),
    ]);
    for (const { code, stdout } of [refused, missing]) expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    for (const path of ['organizations[1].id', 'clients[0].client_type', 'clients[0].surprise']) {
      expect(refused.stderr).toContain(`${path}: `);
    }
    expect(refused.stderr).not.toContain(MARK);
    expect(missing.stderr).toMatch(/cannot be read/);
    expect((await cli('registry', 'export')).stdout).toBe(exported);
  });
});

describe('several processes at once on an empty database', SLOW, () => {
  const withDatabase = async (test: (database: TestDatabase, environment: Record<string, string>) => Promise<void>) => {
    const database = await createTestDatabase();
    try {
      await test(database, environmentOf(database));
    } finally {
      await database.remove();
    }
  };
  const REGISTRY_FILE = writeRegistry(join(root, 'registry.yaml'));

  it('migrate: one does it, all exit with 0', () =>
    withDatabase(async (_database, environment) => {
      const ended = await Promise.all(Array.from({ length: 3 }, () => runCli(['migrate'], environment)));
      expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ended.map(() => ({ code: 0, stderr: '' })));
      const migrated = ended.flatMap(({ stdout }) => stdout.match(/^migrated: .*$/gm) ?? []);
      expect(migrated.length).toBeGreaterThan(0);
      expect(new Set(migrated).size).toBe(migrated.length);
      expect((await runCli(['migrate', '--check'], environment)).code).toBe(0);
    }));

  it.runIf(onMariadb)('a start with one REGISTRY_FILE: all serve', () =>
    withDatabase(async (_database, environment) => {
      const start = () => startServiceProcess({ ...environment, MIGRATE_ON_START: 'true', REGISTRY_FILE });
      const services = await Promise.all([start(), start(), start()]);
      for (const { url } of services) expect((await requestToken(url)).status).toBe(200);
      expect(await Promise.all(services.map((service) => service.terminate()))).toEqual([0, 0, 0]);
    }),
  );

  it.runIf(onMariadb)('a start before the migrations waits for them', () =>
    withDatabase(async (_database, environment) => {
      const starting = startServiceProcess({ ...environment, REGISTRY_FILE });
      await sleep(1_500);
      expect((await runCli(['migrate'], environment)).code).toBe(0);
      const service = await starting;
      expect(service.process.stdout).toMatch(/migrations are pending; run: node dist\/cli\.js migrate/);
      expect((await requestToken(service.url)).status).toBe(200);
      expect(await service.terminate()).toBe(0);
    }),
  );

  it.runIf(onMariadb)(
    'before the database is up: migrate waits and says so on stderr, a start waits until SIGTERM, other commands fail',
    () =>
      withDatabase(async (database, environment) => {
        const proxy = await startTcpProxy(database.url);
        await proxy.cut();
        const away = { ...environment, DATABASE_URL: proxy.through(database.url) };
        const exporting = runCli(['registry', 'export'], away);
        const migrating = TestProcess.start('cli.js', ['migrate'], away);
        const starting = TestProcess.start('main.js', [], { ...PORTS, ...away });
        const { code, stdout, stderr } = await exporting;
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
        expect(stderr).toMatch(/ECONNREFUSED/);
        expect(stderr).not.toContain(new URL(database.url).password);
        await starting.says(/trying again/);
        starting.signal('SIGTERM');
        expect(await starting.ended).toMatchObject({ code: 0, stdout: expect.not.stringContaining('listening on') });
        await migrating.says(/trying again/, 'stderr');
        await proxy.restore();
        expect(await migrating.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(migrated: \w+\n)+$/) });
        await proxy.close();
      }),
  );
});
