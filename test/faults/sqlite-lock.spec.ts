import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../src/testing/test-database.js';
import { refreshingRegistry } from '../support/customer-refresh.js';
import { environmentOf, runCli, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { SqliteCallers } from '../support/sqlite-callers.js';
import { SqliteLock } from '../support/sqlite-lock.js';
import { ACME_AGENT, ACME_SITE, writeRegistry } from '../support/test-registry.js';

const ROUND_COUNT = 20;
const MAX_WAIT_MS = 4_000; // docs/operations.md
const AGENT = ['agent-token', '--email', ACME_AGENT.email, '--client-id', ACME_SITE, '--scope', 'customers:own'];

let database: TestDatabase;
let environment: Record<string, string>;
let service: ServiceProcess;
let lock: SqliteLock;

beforeAll(async () => {
  process.env.TEST_DATABASE = 'sqlite';
  database = await createTestDatabase();
  environment = {
    ...environmentOf(database),
    REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), refreshingRegistry()),
    AUTH_URL: 'https://auth.example',
    NODE_ENV: 'production',
  };
  service = await startServiceProcess(environment);
  lock = await SqliteLock.open(database.url);
});
afterAll(async () => {
  lock?.close();
  service?.process.signal('SIGKILL');
  await service?.process.ended;
  await database?.remove();
});

it('nothing is lost while another process holds the write lock of the SQLite file for 1 to 6 s, 20 times', async () => {
  const callers = await SqliteCallers.start(service.url, (await runCli(AGENT, environment)).stdout.trim());
  for (let round = 0; round < ROUND_COUNT; round++) {
    await lock.lock();
    const writes = (async () => {
      for (const pauseMs of [0, 300, 600]) {
        await sleep(pauseMs);
        await callers.writeOnce();
      }
    })();
    await sleep(1_000 + (5_000 * round) / (ROUND_COUNT - 1));
    await lock.release();
    await writes;
    await lock.lock(); // another process can write
    await lock.release();
    expect((await runCli(['registry', 'export'], environment)).code).toBe(0);
  }
  const statuses = new Set(callers.statuses);
  expect([...statuses].filter((status) => status >= 400)).toEqual([503]);
  expect(callers.longestWaitMs).toBeLessThan(MAX_WAIT_MS);

  service.process.signal('SIGKILL');
  await service.process.ended;
  service = await startServiceProcess(environment);
  callers.moveTo(service.url);
  process.stdout.write(`${await callers.expectAll()} acknowledged, ${callers.statuses.length} requests\n`);
});
