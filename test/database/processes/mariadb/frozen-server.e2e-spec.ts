import { setTimeout } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { MARIADB } from '../../../../scripts/programs.js';
import { FaultTestEnvironment } from '../../../faults/faults.js';
import { cookieBody, cookieHeader, TOKEN } from '../../../support/cookie-grant.js';
import { metricOf } from '../../../support/management-api.js';
import type { ServiceProcess } from '../../../support/processes.js';
import { request, type TestResponse } from '../../../support/test-service.js';

const POOL_CONNECTION_COUNT = 2;
/** Fewer than may wait. */
const REQUEST_COUNT = 150;

describe.runIf(onMariadb && MARIADB.find())('while the database is frozen', () => {
  let environment: FaultTestEnvironment;
  let service: ServiceProcess;
  beforeAll(async () => {
    environment = await FaultTestEnvironment.build();
    service = await environment.start({ DB_POOL_SIZE: String(POOL_CONNECTION_COUNT) });
  });
  afterAll(() => environment?.remove());

  const visit = (cookie?: string): Promise<TestResponse> =>
    request(service.url + TOKEN, {
      method: 'POST',
      body: JSON.stringify(cookieBody()),
      headers: cookie ? { cookie } : {},
    });

  const metric = (name: string) => metricOf(service, name);

  async function customerCount(): Promise<number> {
    const connection = await mysql.createConnection(environment.mariadb.url('faults'));
    const [[row]] = await connection.query<mysql.RowDataPacket[]>('SELECT COUNT(*) AS count FROM customer');
    await connection.end();
    return row?.count;
  }

  it('a statement whose request got 503 no longer waits, and is not sent when the database is back', async () => {
    const known = cookieHeader(await visit());
    // a connection that a frozen server has not accepted is not in use
    while ((await metric('cas_database_connections{state="idle"}')) < POOL_CONNECTION_COUNT) {
      await Promise.all([visit(), visit(known)]);
    }
    const before = await customerCount();
    process.kill(environment.mariadb.pid(), 'SIGSTOP');
    const thaw = () => process.kill(environment.mariadb.pid(), 'SIGCONT');
    onTestFinished(() => void thaw()); // a stopped server cannot be shut down
    const reads: Promise<TestResponse>[] = [];
    // until each connection is in use, because requests that wait together share a statement
    while ((await metric('cas_database_connections{state="in_use"}')) < POOL_CONNECTION_COUNT) {
      reads.push(visit(known));
      await setTimeout(50);
    }
    const writes = Array.from({ length: REQUEST_COUNT }, () => visit());
    await expect.poll(() => metric('cas_database_waiting')).toBeGreaterThan(POOL_CONNECTION_COUNT);
    const statuses = (await Promise.all([...reads, ...writes])).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([503]));
    // the statements in the background wait for at most 1 s
    await expect.poll(() => metric('cas_database_waiting')).toBe(0);
    thaw();
    await expect.poll(async () => (await visit(known)).status).toBe(200);
    expect(await customerCount()).toBe(before);
  });
});
