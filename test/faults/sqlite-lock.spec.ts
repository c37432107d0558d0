import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { createTestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { agentTokenOf, runCli, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { SqliteCallers, sqliteEnvironment } from '../support/sqlite-callers.js';
import { SqliteLock } from '../support/sqlite-lock.js';

const ROUND_COUNT = 20;
const MAX_WAIT_MS = 4_000; // docs/operations.md

let database: TestDatabase;
let environment: Record<string, string>;
let service: ServiceProcess;
let lock: SqliteLock;

beforeAll(async () => {
  process.env.TEST_DATABASE = 'sqlite';
  database = await createTestDatabase();
  environment = sqliteEnvironment(database);
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
  const callers = await SqliteCallers.start(service.url, await agentTokenOf(environment));
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
