import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createTestDatabase } from '../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { RegistryFile } from '../../src/registry/file/registry-file.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { environmentOf, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { ACME } from '../support/test-registry.js';
import { serviceOfTest } from '../support/use-service.js';

const SLOW = { timeout: 300_000 };
/** The file is so long that a thread of its own parses it. */
const CLIENT_COUNT = 1_500;

function registryOf(name: string, more: object = {}): string {
  const organizations = [{ id: ACME, name: 'Acme', public_clients: [] }];
  const clients = Array.from({ length: CLIENT_COUNT }, (_, index) => ({
    client_id: `client-${index}`,
    name,
    client_type: 'web',
    organization_id: ACME,
    redirect_uris: [`https://client-${index}.example/`],
  }));
  Object.assign(clients[700] as object, more);
  return stringify({ organizations, clients });
}

describe('a registry file of 1,500 clients', SLOW, () => {
  let database: TestDatabase;
  let path: string;
  let running: ServiceProcess | undefined;
  const write = (text: string) => writeFileSync(path, text);
  beforeAll(async () => {
    database = await createTestDatabase();
    path = join(database.folder, 'large.yaml');
  });
  afterEach(() => running?.process.signal('SIGKILL'));
  afterAll(() => database?.remove());

  it('creates the entries, leaves them unchanged the second time, and changes only what changed', async () => {
    const service = await serviceOfTest({ database });
    const apply = async () => {
      const applied = await service.application.get(RegistryFile, { strict: false }).apply(path);
      const countOf = (outcome: string) => applied.filter((entry) => entry.outcome === outcome).length;
      return [countOf('created'), countOf('changed'), countOf('unchanged')];
    };
    write(registryOf('First'));
    expect(await apply()).toEqual([CLIENT_COUNT, 1, 0]);
    expect(await apply()).toEqual([0, 0, CLIENT_COUNT + 1]);
    write(registryOf('First', { redirect_uri_match: 'prefix' }));
    expect(await apply()).toEqual([0, 1, CLIENT_COUNT]);
    write(registryOf('Second', { redirect_uri_match: 'prefix' }));
    expect(await apply()).toEqual([0, CLIENT_COUNT, 1]);
  });

  it('is followed by a process, which rejects invalid versions and serves requests meanwhile', async () => {
    write(registryOf('Third'));
    const environment = { ...environmentOf(database), MIGRATE_ON_START: 'true', REGISTRY_FILE: path };
    const service = await startServiceProcess(environment);
    running = service;
    const others: number[] = [];
    const statusOf = async (client_id: string, redirect_uri: string) => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify(cookieBody({ client_id, redirect_uri }));
      return (await fetch(service.url + TOKEN, { method: 'POST', headers, body })).status;
    };
    const uri = 'https://moved.example/';
    expect(await statusOf('client-700', uri)).toBe(400);
    write(registryOf('Third', { client_type: 'unknown' }));
    await service.process.says(/clients\[700\]\.client_type: /);
    write(`clients:\n${'  - { client_id: a }\n'.repeat(5_000)}  - {\n`);
    await service.process.says(/line 500\d: /);
    write(registryOf('Fourth', { redirect_uris: [uri] }));
    const isApplied = async () => {
      others.push(await statusOf('client-1', 'https://client-1.example/'));
      return statusOf('client-700', uri);
    };
    await expect.poll(isApplied, { timeout: 120_000, interval: 20 }).toBe(200);
    expect(new Set(others)).toEqual(new Set([200]));
  });
});
