import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { httpClientOf } from '../../packages/conformance-kit/src/http-client.js';
import { createTestDatabase } from '../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { bearer } from '../support/authorization-headers.js';
import { manage } from '../support/management-api.js';
import { runCli, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { agentTokenOf, SqliteCallers, sqliteEnvironment } from '../support/sqlite-callers.js';
import { SqliteLock } from '../support/sqlite-lock.js';
import { INFO, newCustomer } from '../support/transfers.js';

let database: TestDatabase;
let environment: Record<string, string>;
let service: ServiceProcess;
let lock: SqliteLock;
let callers: SqliteCallers;

beforeAll(async () => {
  database = await createTestDatabase();
  environment = sqliteEnvironment(database);
  service = await startServiceProcess(environment);
  lock = await SqliteLock.open(database.url);
  callers = await SqliteCallers.start(service.url, await agentTokenOf(environment));
});
afterAll(async () => {
  lock?.close();
  service?.process.signal('SIGKILL');
  await service?.process.ended;
  await database?.remove();
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
