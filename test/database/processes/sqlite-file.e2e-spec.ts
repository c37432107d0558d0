import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { httpClientOf } from '../../../packages/conformance-kit/src/http-client.js';
import { createTestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { bearer } from '../../support/authorization-headers.js';
import { useDatabase } from '../../support/databases.js';
import { manage } from '../../support/management-api.js';
import { agentTokenOf, runCli, type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { PROJECT } from '../../support/project-files.js';
import { SqliteCallers, sqliteEnvironment } from '../../support/sqlite-callers.js';
import { SqliteLock } from '../../support/sqlite-lock.js';
import { INFO, newCustomer } from '../../support/transfers.js';

const PROCESS_COUNT = 4;
const FILE_COUNT = 60;

/** Opens each file that the test names, at the time that it names, and sends the journal mode or the error. */
const PROGRAM = `
  import Database from 'libsql';
  import { prepareFile } from '${PROJECT}/dist/platform/database/sqlite-statements.js';
  process.on('message', async ({ path, at }) => {
    while (Date.now() < at);
    try {
      const database = new Database(path);
      await prepareFile(database);
      const [row] = database.pragma('journal_mode');
      database.close();
      process.send(row.journal_mode);
    } catch (error) {
      process.send(error.message);
    }
  });
  process.send('ready');
`;

const database = useDatabase(createTestDatabase);
let environment: Record<string, string>;
let service: ServiceProcess;
let lock: SqliteLock;
let callers: SqliteCallers;

beforeAll(async () => {
  environment = sqliteEnvironment(database);
  service = await startServiceProcess(environment);
  lock = await SqliteLock.open(database.url);
  callers = await SqliteCallers.start(service.url, await agentTokenOf(environment));
});
afterAll(async () => {
  lock?.close();
  service?.process.signal('SIGKILL');
  await service?.process.ended;
});

const metric = async (name: string) => {
  const { text } = await manage(service, 'GET', '/metrics');
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
};

describe('while another process holds the write lock of the SQLite file', () => {
  it('requests that write get 503 before the lock is free, and those that only read are served meanwhile', async () => {
    const client = httpClientOf(service.url);
    const { access_token } = await newCustomer(client);
    await lock.lock();
    let areWriting = true;
    const before = callers.statuses.length;
    const writes = Promise.all([callers.writeOnce(), callers.writeOnce()]).finally(() => {
      areWriting = false;
    });
    let served = 0;
    while (areWriting) {
      expect((await client.send('GET', INFO, bearer(access_token))).status).toBe(200);
      expect((await manage(service, 'GET', '/health/ready')).status).toBe(200);
      served++;
    }
    expect(served, 'one wait for the lock delays at most one of them').toBeGreaterThan(3);
    await writes;
    expect(await metric('cas_database_seconds_without_write')).toBeGreaterThan(0);
    await lock.release();
    const statuses = new Set(callers.statuses.slice(before));
    expect(statuses).toContain(503);
    expect([...statuses].every((status) => status < 500 || status === 503)).toBe(true);
  });

  it('requests that write wait for the lock', async () => {
    await lock.lock();
    const before = callers.statuses.length;
    const writes = callers.writeOnce();
    await manage(service, 'GET', '/health/live');
    await lock.release();
    await writes;
    expect(callers.statuses.slice(before)).not.toContain(503);
    expect(await metric('cas_database_seconds_without_write')).toBe(0);
  });

  it('a process is not ready after 10 s without a successful write, and is ready again when the lock is free', async () => {
    const ready = async () => (await manage(service, 'GET', '/health/ready')).status;
    await lock.lock();
    await callers.writeOnce();
    await expect.poll(ready, { interval: 500 }).toBe(503);
    expect(await metric('cas_database_seconds_without_write')).toBeGreaterThanOrEqual(10);
    await lock.release();
    expect(await ready()).toBe(200);
  });
});

describe('after the lock was held', () => {
  it('another process can write, and the command line works', async () => {
    await lock.lock();
    await lock.release();
    expect(await runCli(['purge'], environment)).toMatchObject({ code: 0, stderr: '' });
    expect(await runCli(['registry', 'export'], environment)).toMatchObject({ code: 0 });
  });

  it('everything that was acknowledged exists, also after the process was killed', async () => {
    await callers.writeOnce();
    service.process.signal('SIGKILL');
    await service.process.ended;
    service = await startServiceProcess(environment);
    callers.moveTo(service.url);
    expect(await callers.expectAll()).toBeGreaterThan(8);
  });
});

it('a copy that was made while the service wrote contains everything that was acknowledged before', async () => {
  const agentToken = await agentTokenOf(environment);
  const before = await SqliteCallers.start(service.url, agentToken);
  await before.writeOnce();
  const meanwhile = await SqliteCallers.start(service.url, agentToken);
  const file = join(database.folder, 'backup.sqlite');
  let isCopied = false;
  const load = (async () => {
    while (!isCopied) await meanwhile.writeOnce();
  })();
  expect(await runCli(['backup', file], environment)).toMatchObject({ code: 0, stdout: `copied to ${file}\n` });
  isCopied = true;
  await load;
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const restored = await startServiceProcess({ ...environment, DATABASE_URL: `sqlite:${file}` });
  onTestFinished(() => void restored.process.signal('SIGKILL'));
  before.moveTo(restored.url);
  expect(await before.expectAll()).toBeGreaterThan(4);
  meanwhile.moveTo(service.url);
  await meanwhile.expectAll();
});

it('a backup overwrites no file, and copies no other database', async () => {
  const file = join(database.folder, 'exists.sqlite');
  writeFileSync(file, '');
  expect(await runCli(['backup', file], environment)).toMatchObject({ code: 1, stderr: `${file} exists already\n` });
  const other = { ...environment, DATABASE_URL: 'mysql://user:password@127.0.0.1:1/database' };
  const refused = await runCli(['backup', join(database.folder, 'other.sqlite')], other);
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^backup copies an embedded SQLite database/),
  });
});

it('processes that open a new database file at the same time all get a connection to it', async () => {
  const processes: ChildProcess[] = [];
  onTestFinished(() => {
    for (const each of processes) each.kill();
  });
  for (let count = 0; count < PROCESS_COUNT; count++) {
    const options: SpawnOptions = { cwd: PROJECT, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] };
    processes.push(spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], options));
  }
  await Promise.all(processes.map((each) => once(each, 'message')));
  for (let file = 0; file < FILE_COUNT; file++) {
    const results = processes.map(async (each) => (await once(each, 'message'))[0]);
    for (const each of processes) each.send({ path: join(database.folder, `new-${file}.sqlite`), at: Date.now() + 5 });
    expect(await Promise.all(results)).toEqual(Array(PROCESS_COUNT).fill('wal'));
  }
});
