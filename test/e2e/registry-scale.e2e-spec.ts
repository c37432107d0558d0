import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createTestDatabase, type TestDatabase } from '../../src/testing/test-database.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { environmentOf, runCli, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { ACME } from '../support/test-registry.js';

const SLOW = { timeout: 120_000 };
const CLIENTS = 1_500;

describe('a registry file of 1,500 clients', SLOW, () => {
  let database: TestDatabase;
  let service: ServiceProcess;
  let path: string;
  const write = (name: string, more: object = {}) => {
    const organizations = [{ id: ACME, name: 'Acme', public_clients: [] }];
    const clients = Array.from({ length: CLIENTS }, (_, index) => ({
      client_id: `client-${index}`,
      name,
      client_type: 'web',
      organization_id: ACME,
      redirect_uris: [`https://client-${index}.example/`],
    }));
    Object.assign(clients[700] as object, more);
    writeFileSync(path, stringify({ organizations, clients }));
  };
  const environment = () => environmentOf(database);
  const apply = () => runCli(['registry', 'apply', path], environment());
  const counts = (stdout: string) =>
    ['created', 'changed', 'unchanged'].map((outcome) => stdout.split(`\n${outcome}: client`).length - 1);
  const statusOf = async (client_id: string, redirect_uri: string) => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify(cookieBody({ client_id, redirect_uri }));
    return (await fetch(service.url + TOKEN, { method: 'POST', headers, body })).status;
  };
  beforeAll(async () => {
    database = await createTestDatabase();
    path = join(database.folder, 'large.yaml');
    write('First');
    expect((await runCli(['migrate'], environment())).code).toBe(0);
  });
  afterAll(async () => {
    service?.process.signal('SIGKILL');
    await database?.remove();
  });

  it('is applied, leaves everything unchanged when it is applied again, and changes only what changed', async () => {
    expect(counts(`\n${(await apply()).stdout}`)).toEqual([CLIENTS, 0, 0]);
    expect(counts(`\n${(await apply()).stdout}`)).toEqual([0, 0, CLIENTS]);
    write('First', { redirect_uri_match: 'prefix' });
    expect(counts(`\n${(await apply()).stdout}`)).toEqual([0, 1, CLIENTS - 1]);
    write('Second', { redirect_uri_match: 'prefix' });
    expect(counts(`\n${(await apply()).stdout}`)).toEqual([0, CLIENTS, 0]);
  });

  it('is rejected with the path of an invalid entry and the line of a syntax error', async () => {
    write('Second', { client_type: 'unknown' });
    expect((await apply()).stderr).toContain('clients[700].client_type: ');
    writeFileSync(path, `clients:\n${'  - { client_id: a }\n'.repeat(5_000)}  - {\n`);
    expect((await apply()).stderr).toMatch(/line 500\d: /);
  });

  it('is applied by a running process, which serves requests meanwhile', async () => {
    write('Third');
    service = await startServiceProcess({ ...environment(), REGISTRY_FILE: path });
    const uri = 'https://moved.example/';
    expect(await statusOf('client-700', uri)).toBe(400);
    write('Fourth', { redirect_uris: [uri] });
    const others: number[] = [];
    await expect
      .poll(
        async () => {
          others.push(await statusOf('client-1', 'https://client-1.example/'));
          return statusOf('client-700', uri);
        },
        { timeout: 60_000, interval: 20 },
      )
      .toBe(200);
    expect(new Set(others)).toEqual(new Set([200]));
  });
});
