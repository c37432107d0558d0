import { setTimeout as sleep } from 'node:timers/promises';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { customer, seedCustomers } from '../../bench/support/site.js';
import { patient } from '../races/world.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { runCli, type ServiceProcess } from '../support/processes.js';
import { newTenant, type Tenant } from '../support/tenants.js';
import { ACME } from '../support/test-registry.js';
import { httpClientOf } from '../support/test-service.js';
import { infoStatus, transferToken } from '../support/transfers.js';
import { FaultTestEnvironment } from './faults.js';

/** Customers of the tenant that are added to the tables. A step erases 64. */
const CUSTOMER_COUNT = 450;
/** Browsers that have a customer of the tenant and one of another organization, and that use the service. */
const SHARED_COUNT = 10;
/** About the time of a step of the erasure with its pause, so that a kill hits any part of it. */
const MAX_DELAY_MS = 200;
const KILL_COUNT = 5;
/** The last kills can come after the last customer. */
const MIN_KILLS = 3;
const ADMIN_TOKEN = 'operator-of-the-fault-tests-0123456789';

interface Progress {
  offboardingAt: string | null;
  deletedAt: string | null;
  /** The customers, and the clients that are not deleted yet. */
  left: number;
}

interface Shared {
  cookie: string;
  ofTenant: string;
  ofAcme: string;
  /** Of the customer of the other organization. */
  token: string;
}

let environment: FaultTestEnvironment;
let connection: mysql.Connection;
let processes: ServiceProcess[] = [];
let tenant: Tenant;

const query = async (sql: string, values: string[] = []) => (await connection.query<RowDataPacket[]>(sql, values))[0];
const admin = (method: string, path: string, body?: object) =>
  manage(processes[0] as never, method, path, bearer(ADMIN_TOKEN), body);

async function startBoth(): Promise<void> {
  const start = () => environment.start({ ADMIN_TOKENS: `operator:all:${ADMIN_TOKEN}` });
  processes = await Promise.all([start(), start()]);
}

/** Kills both processes. The lease of the killed process would end a minute later. */
async function killBoth(): Promise<void> {
  for (const { process } of processes) process.signal('SIGKILL');
  await Promise.all(processes.map(({ process }) => process.ended));
  await query("UPDATE lease SET acquired_at = acquired_at - INTERVAL 2 MINUTE WHERE name = 'offboarding'");
}

/** `undefined` after the end. */
async function progress(): Promise<Progress | undefined> {
  const sql = `SELECT offboarding_at AS offboardingAt, deleted_at AS deletedAt,
    (SELECT COUNT(*) FROM customer WHERE organization_id = organization.id)
      + (SELECT COUNT(*) FROM client_application AS client
          WHERE client.organization_id = organization.id AND client.deleted_at IS NULL) AS \`left\`
    FROM organization WHERE id = ?`;
  return (await query(sql, [tenant.id]))[0] as Progress | undefined;
}

/** Checks that the progress did not go back. */
function expectNotBehind(former: Progress, now: Progress): Progress {
  expect(now.offboardingAt).toEqual(former.offboardingAt);
  if (former.deletedAt !== null) expect(now.deletedAt).toEqual(former.deletedAt);
  expect(now.left).toBeLessThanOrEqual(former.left);
  return now;
}

/** Reads the progress until it differs from the former one. */
async function nextProgress(former: Progress): Promise<Progress> {
  for (;;) {
    const now = expectNotBehind(former, (await progress()) as Progress);
    if (now.left < former.left || now.deletedAt !== former.deletedAt) return now;
    await sleep(5);
  }
}

async function newShared(): Promise<Shared> {
  const [pod] = processes as [ServiceProcess];
  const client = patient({ ...pod, ...httpClientOf(pod.url) });
  const browser = new TestBrowser(client);
  const { entity_id: ofAcme, access_token: token } = (await browser.visit()).body;
  const visited = (await browser.visit(tenant.ofClient)).body;
  await transferToken(client, visited.access_token, { client_id: tenant.clientId });
  return { cookie: browser.cookie as string, ofAcme, token, ofTenant: visited.entity_id };
}

/** The tables in which a row has one of the ids. */
async function tablesWith(ids: string[]): Promise<string[]> {
  const tables = (await query('SHOW TABLES')).map((row) => String(Object.values(row)[0]));
  const texts = await Promise.all(tables.map(async (table) => JSON.stringify(await query(`SELECT * FROM ${table}`))));
  return tables.filter((_, index) => ids.some((id) => texts[index]?.includes(id)));
}

const all: Shared[] = [];
const rowsOfAcme = () => query('SELECT * FROM customer WHERE organization_id = ? ORDER BY entity_id', [ACME]);
let acmeBefore: RowDataPacket[];

beforeAll(async () => {
  environment = await FaultTestEnvironment.build();
  connection = await mysql.createConnection({ uri: environment.environment.DATABASE_URL as string, dateStrings: true });
  await startBoth();
  tenant = await newTenant({ admin });
  await seedCustomers(connection, 1, CUSTOMER_COUNT, 0, tenant.id);
  while (all.length < SHARED_COUNT) all.push(await newShared());
  acmeBefore = await rowsOfAcme();
});
afterAll(async () => {
  await connection?.end();
  await environment?.remove();
});

describe('protocol §8.2, an off-boarding whose two processes are killed with SIGKILL', () => {
  it('again and again goes on where it was, is never cancelled, and erases all customers', async () => {
    const path = `/admin/organizations/${tenant.id}`;
    expect((await admin('PATCH', path, { suspended: true })).status).toBe(200);
    expect((await admin('DELETE', path)).status).toBe(200);
    await query('UPDATE organization SET offboarding_at = NOW(3) - INTERVAL 1 HOUR WHERE id = ?', [tenant.id]);
    await killBoth();
    const leftAfterKills: number[] = [];
    let now = (await progress()) as Progress;
    while (now.left > 0 && leftAfterKills.length < KILL_COUNT) {
      await startBoth();
      if (now.deletedAt !== null) expect((await admin('DELETE', `${path}/offboarding`)).status).toBe(409);
      now = await nextProgress(now);
      await sleep(Math.random() * MAX_DELAY_MS);
      await killBoth();
      now = expectNotBehind(now, (await progress()) as Progress);
      leftAfterKills.push(now.left);
    }
    await startBoth();
    while (now.left > 0) now = await nextProgress(now);
    expect(now.deletedAt).not.toBeNull();
    await killBoth();
    process.stdout.write(`${JSON.stringify({ leftAfterKills })}\n`);
    expect(leftAfterKills.filter((left) => left > 0).length).toBeGreaterThanOrEqual(MIN_KILLS);
  }, 600_000);

  it('at its end leaves nothing of the organization, and everything of another one', async () => {
    const times = { organization: 'deleted_at', client_application: 'deleted_at', ended: 'expires_at' };
    for (const [table, column] of Object.entries(times))
      await query(`UPDATE ${table} SET ${column} = ${column} - INTERVAL 2 DAY WHERE ${column} IS NOT NULL`);
    expect((await runCli(['purge'], environment.environment)).code).toBe(0);
    await startBoth();
    await Promise.race(processes.map(({ process }) => process.says(/"organization\.erased"/)));
    await killBoth();
    await startBoth();
    await expect.poll(progress, { timeout: 60_000 }).toBeUndefined();
    const seeded = Array.from({ length: CUSTOMER_COUNT }, (_, index) => customer(index + 1).entityId);
    const ofTenant = [...seeded, ...all.map((shared) => shared.ofTenant)];
    expect(await tablesWith([tenant.id, tenant.clientId, tenant.agentId, tenant.email, ...ofTenant])).toEqual([]);
    expect(await rowsOfAcme()).toEqual(acmeBefore);
    const client = httpClientOf((processes[1] as ServiceProcess).url);
    for (const { cookie, token, ofAcme } of all) {
      expect(await infoStatus(client, token)).toBe(200);
      expect((await client.post(TOKEN, cookieBody(), { cookie })).body.entity_id).toBe(ofAcme);
    }
  });
});
