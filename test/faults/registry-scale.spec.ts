import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedRegistry } from '../../bench/support/registries.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import type { ServiceProcess } from '../support/processes.js';
import { ACME } from '../support/test-registry.js';
import { FaultTestEnvironment } from './faults.js';

/** The supported size (docs/tenants.md): 100,000 clients, with 20,000 organizations and 1,000 agents. */
const CLIENT_COUNT = 100_000;
const CONTAINER_MEBIBYTES = 512;
/** The heap of a container of 512 MiB. The rest is the program of Node, the stacks and the buffers. */
const NODE_OPTIONS = '--max-old-space-size=320 --max-semi-space-size=8';
const ADMIN_TOKEN = 'admin-token-of-the-tests-0123456789';
const CHANGE_COUNT = 5;

let testEnvironment: FaultTestEnvironment;
let service: ServiceProcess;
let other: ServiceProcess;
beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  await (await testEnvironment.start()).terminate(); // creates the tables
  const connection = await mysql.createConnection(testEnvironment.environment.DATABASE_URL as string);
  await seedRegistry(connection, CLIENT_COUNT);
  await connection.end();
  service = await testEnvironment.start({ ADMIN_TOKENS: `operator:all:${ADMIN_TOKEN}`, NODE_OPTIONS });
  other = await testEnvironment.start({ NODE_OPTIONS });
});
afterAll(() => testEnvironment?.remove());

const admin = async (method: string, path: string, body: object) => {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const url = `${service.managementUrl}/admin/clients${path}`;
  return (await fetch(url, { method, headers, body: JSON.stringify(body) })).status;
};
const token = async (url: string, client_id: string) => {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(url + TOKEN, { method: 'POST', headers, body: JSON.stringify(cookieBody({ client_id })) }))
    .status;
};
const peakMebibytes = ({ process: { pid } }: ServiceProcess) =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
const fullReads = async ({ managementUrl }: ServiceProcess) => {
  const metrics = await (await fetch(`${managementUrl}/metrics`)).text();
  return Number(/^cas_registry_reads_total\{kind="full"\} (\d+)/m.exec(metrics)?.[1]);
};

describe('two processes with 100,000 clients and the memory of a container of 512 MiB', () => {
  it('serve every request while clients change, and see each change without reading the whole registry', async () => {
    const before = [await fullReads(service), await fullReads(other)];
    let isOver = false;
    const statuses: number[] = [];
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) statuses.push(await token(other.url, 'acme-site'));
    });
    for (let change = 0; change < CHANGE_COUNT; change++) {
      const client_id = `scale-${change}`;
      const client = { client_id, name: client_id, client_type: 'web', organization_id: ACME };
      expect(await admin('POST', '', client)).toBe(201);
      expect(await token(service.url, client_id)).toBe(200);
      await expect.poll(() => token(other.url, client_id), { timeout: 60_000, interval: 200 }).toBe(200);
      await sleep(200);
    }
    isOver = true;
    await Promise.all(load);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect([await fullReads(service), await fullReads(other)]).toEqual(before);
  });

  it('never need more memory than the container has', () => {
    for (const each of [service, other]) expect(peakMebibytes(each)).toBeLessThan(CONTAINER_MEBIBYTES);
  });
});
