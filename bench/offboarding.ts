/**
 * `npm run bench:offboarding`: erases an organization with 100,000 customers, first while another organization's
 * customers send requests, then alone. OFFBOARDED sets the number of customers. Takes 10 minutes.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RowDataPacket } from 'mysql2/promise';
import type { Table } from './support/figures.js';
import { columnsOf, measure, medians, rounded } from './support/measure.js';
import { visits } from './support/routes.js';
import { SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';
import { seedCustomers } from './support/site.js';

const { OFFBOARDED = '100000', BENCH_SECONDS = '4' } = process.env;
const LEAVING_COUNT = Number(OFFBOARDED);
const STAYING_COUNT = 20_000;
const ROUND_SECONDS = Number(BENCH_SECONDS);
const ROUND_COUNT = 5;
/** Few, because the background work must not delay a process that is not overloaded. */
const CONNECTION_COUNT = 4;

await benchmark(`OFFBOARDED=${OFFBOARDED} npm run bench:offboarding`, '1G', async (setup) => {
  const { connection, start } = setup;
  await seedCustomers(connection, 1, STAYING_COUNT);
  const service = await start(SERVICE);
  const requests: Table = {};
  await measureRequests('without an erasure');
  const first = await beginErasure(STAYING_COUNT + 1);
  await measureRequests('during an erasure');
  if ((await customersLeft(first)) === 0) throw new Error('the erasure ended before the measurement did');
  await untilErased(first);
  const second = await beginErasure(STAYING_COUNT + LEAVING_COUNT + 1);
  const alone = await untilErased(second);
  await service.stop();
  return [requests, { [`${LEAVING_COUNT.toLocaleString('en')} customers, without other requests`]: alone }];

  async function measureRequests(state: string): Promise<void> {
    for (const { name, requests: requestsOf } of visits(STAYING_COUNT)) {
      const round = () =>
        measure(service, setup, {
          ...{ url: service.url, requests: requestsOf(), seconds: ROUND_SECONDS },
          connections: CONNECTION_COUNT,
        });
      await round();
      const rounds = [];
      while (rounds.length < ROUND_COUNT) rounds.push(await round());
      requests[`${name}, ${state}`] = columnsOf(medians(rounds));
    }
    console.table(requests);
  }

  /** Adds an organization whose erasure is due, with its customers, and waits until the erasure has begun. */
  async function beginErasure(from: number): Promise<string> {
    const id = randomUUID();
    await seedCustomers(connection, from, from + LEAVING_COUNT - 1, 0, id);
    await connection.query(
      `INSERT INTO organization (id, name, chat_between_groups, grants, public_clients, from_file, suspended,
        offboarding_at, revision) SELECT ?, 'Leaving', 1, '{}', '[]', 0, 1, NOW(3) - INTERVAL 1 DAY, 0`,
      [id],
    );
    await connection.query('UPDATE registry_revision SET complete_from = revision + 1, revision = revision + 1');
    while ((await customersLeft(id)) === LEAVING_COUNT) await sleep(100);
    return id;
  }

  async function untilErased(id: string) {
    const [before, begunAt, left] = [await statementCount(), performance.now(), await customersLeft(id)];
    while ((await customersLeft(id)) > 0) await sleep(1_000);
    const seconds = (performance.now() - begunAt) / 1000;
    const statements = ((await statementCount()) - before) / left;
    return { seconds: Math.round(seconds), 'customers/s': Math.round(left / seconds), statements: rounded(statements) };
  }

  async function customersLeft(id: string): Promise<number> {
    const query = 'SELECT COUNT(*) AS count FROM customer WHERE organization_id = ?';
    const [[row]] = await connection.query<RowDataPacket[]>(query, [id]);
    return Number(row?.count);
  }

  async function statementCount(): Promise<number> {
    const [[row]] = await connection.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Questions'");
    return Number(row?.Value);
  }
});
