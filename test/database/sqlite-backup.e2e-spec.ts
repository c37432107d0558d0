import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase } from '../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { runCli, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { agentTokenOf, SqliteCallers, sqliteEnvironment } from '../support/sqlite-callers.js';

let database: TestDatabase;
let environment: Record<string, string>;
const services: ServiceProcess[] = [];

async function start(more: object = {}): Promise<ServiceProcess> {
  const service = await startServiceProcess({ ...environment, ...more });
  services.push(service);
  return service;
}

beforeAll(async () => {
  database = await createTestDatabase();
  environment = sqliteEnvironment(database);
});
afterAll(async () => {
  for (const { process } of services) process.signal('SIGKILL');
  await Promise.all(services.map(({ process }) => process.ended));
  await database?.remove();
});

it('a copy that was made while the service wrote contains everything that was acknowledged before', async () => {
  const service = await start();
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

  const restored = await start({ DATABASE_URL: `sqlite:${file}` });
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
