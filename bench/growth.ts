/**
 * `npm run bench:growth`: measures returning and new customers with a small database, and with millions of customers,
 * over all of whom the requests are spread. GROWTH=0.02,1,5 sets the numbers of customers in millions. Takes 10 minutes
 * and 5 GB of disk.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RowDataPacket } from 'mysql2/promise';
import type { Table } from './support/figures.js';
import { columnsOf, measure, medians, ROUND_SECONDS } from './support/measure.js';
import { visits } from './support/routes.js';
import { SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';
import { seedCustomers } from './support/site.js';

const { GROWTH = '0.02,1,5' } = process.env;
const WARM_UP_SECONDS = 2;
const ROUND_COUNT = 5;
const MAX_DIRTY_PAGES = 1_000;

await benchmark(`GROWTH=${GROWTH} npm run bench:growth`, '2G', async (setup) => {
  const { connection, start } = setup;
  const rows: Table = {};
  let customers = 0;
  for (const millions of GROWTH.split(',')) {
    const more = Number(millions) * 1e6;
    await seedCustomers(connection, customers + 1, more);
    customers = more;
    await flushed();
    await measureVisits();
  }
  return [rows, await sizes()];

  async function measureVisits(): Promise<void> {
    const service = await start(SERVICE);
    for (const { name, requests } of visits(customers)) {
      const measureFor = (seconds: number) =>
        measure(service, setup, { url: service.url, requests: requests(), seconds });
      await measureFor(WARM_UP_SECONDS);
      const rounds = [];
      while (rounds.length < ROUND_COUNT) rounds.push(await measureFor(ROUND_SECONDS));
      const figures = medians(rounds);
      const row = { ...columnsOf(figures), 'bytes written': Math.round(figures.written) };
      rows[`${name}, ${customers.toLocaleString('en')} customers`] = row;
    }
    await service.stop();
    console.table(rows);
  }

  /** Waits until the server has written the new rows to its files: reads of the first round would wait behind them. */
  async function flushed(): Promise<void> {
    await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = 0');
    let dirtyPages: number;
    do {
      await sleep(1_000);
      const query = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'";
      const [[row]] = await connection.query<RowDataPacket[]>(query);
      dirtyPages = Number(row?.Value);
    } while (dirtyPages > MAX_DIRTY_PAGES);
    await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT');
  }

  async function sizes(): Promise<Table> {
    await connection.query('ANALYZE TABLE customer, browser, session');
    const [tables] = await connection.query<RowDataPacket[]>(`
      SELECT table_name AS name, CONCAT('about ', table_rows) AS \`rows\`, ROUND(data_length / POW(2, 20)) AS 'data MiB',
        ROUND(index_length / POW(2, 20)) AS 'indexes MiB'
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_rows > 1000`);
    return Object.fromEntries(tables.map(({ name, ...row }) => [name, row]));
  }
});
