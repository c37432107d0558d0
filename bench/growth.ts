/**
 * `npm run bench:growth`: measures returning and new customers with a small database, with millions of
 * customers, codes and ended tokens, and during a purge. GROWTH=1,5,10 sets the first and second number of customers and
 * that of expired codes, in millions. Takes 15 minutes and 10 GB of disk.
 */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RowDataPacket } from 'mysql2/promise';
import type { Table } from './support/figures.js';
import { columnsOf, measure, medians } from './support/measure.js';
import { visits } from './support/routes.js';
import { SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';
import { CLIENT, idOf, seedCustomers } from './support/site.js';

const { GROWTH = '1,5,10', BENCH_SECONDS = '4' } = process.env;
const [FIRST_COUNT = 0, SECOND_COUNT = 0, EXPIRED_COUNT = 0] = GROWTH.split(',').map((millions) => +millions * 1e6);
const SMALL_COUNT = 20_000;
const ROWS_PER_INSERT = 1_000_000;
const ROUND_SECONDS = Number(BENCH_SECONDS);
const ROUND_COUNT = 5;
const MAX_DIRTY_PAGE_COUNT = 1_000;

await benchmark(`GROWTH=${GROWTH} npm run bench:growth`, '2G', async (setup) => {
  const { connection, environment, start } = setup;
  const rows: Table = {};
  await seed(1, SMALL_COUNT);
  await measureWith('small database', SMALL_COUNT);
  await seed(SMALL_COUNT + 1, FIRST_COUNT);
  await measureWith('first number', FIRST_COUNT);
  await seed(FIRST_COUNT + 1, SECOND_COUNT);
  await measureWith('second number', SECOND_COUNT);
  await seedExpired();
  await measureWith('with expired codes and as many ended tokens', SECOND_COUNT);
  const purge = spawn(process.execPath, ['dist/cli.js', 'purge'], { env: environment, stdio: 'ignore' });
  await measureWith('during a purge', SECOND_COUNT);
  if (purge.exitCode !== null) throw new Error('the purge ended before the measurement did');
  purge.kill('SIGKILL');
  return [rows, await sizes()];

  async function measureWith(state: string, customers: number): Promise<void> {
    const service = await start(SERVICE);
    for (const { name, requests } of visits(customers)) {
      const measureFor = (seconds: number) =>
        measure(service, setup, { url: service.url, requests: requests(), seconds });
      await measureFor(2);
      const rounds = [];
      while (rounds.length < ROUND_COUNT) rounds.push(await measureFor(ROUND_SECONDS));
      const figures = medians(rounds);
      const row = { ...columnsOf(figures), 'bytes written': Math.round(figures.written) };
      rows[`${name}, ${customers.toLocaleString('en')} customers, ${state}`] = row;
    }
    await service.stop();
    console.table(rows);
  }

  async function seed(from: number, to: number): Promise<void> {
    await seedCustomers(connection, from, to);
    await flushed();
  }

  async function seedExpired(): Promise<void> {
    for (let first = 1; first <= EXPIRED_COUNT; first += ROWS_PER_INSERT) {
      const numbers = `seq_${first}_to_${Math.min(EXPIRED_COUNT, first + ROWS_PER_INSERT - 1)}`;
      const expires = 'NOW(3) - INTERVAL (seq % 3600) SECOND';
      const customer = idOf('customer', `(1 + seq % ${SECOND_COUNT})`);
      await connection.query(`
        INSERT INTO session (id, kind, customer_id, depth, epoch, client_id, code_hash, created_at, expires_at)
        SELECT ${idOf('code')}, 'code', ${customer}, 1, 0, '${CLIENT}', SHA2(seq, 256), NOW(3), ${expires} - INTERVAL 1 DAY
        FROM ${numbers}`);
      await connection.query(`
        INSERT INTO ended (kind, value, reason, issued_before, expires_at, audience)
        SELECT 'token', MD5(seq), 'revoked', NOW(3), ${expires}, 'customer-api' FROM ${numbers}`);
    }
    await flushed();
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
    } while (dirtyPages > MAX_DIRTY_PAGE_COUNT);
    await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT');
  }

  async function sizes(): Promise<Table> {
    await connection.query('ANALYZE TABLE customer, browser, session, ended');
    const [tables] = await connection.query<RowDataPacket[]>(`
      SELECT table_name AS name, CONCAT('about ', table_rows) AS \`rows\`, ROUND(data_length / POW(2, 20)) AS 'data MiB',
        ROUND(index_length / POW(2, 20)) AS 'indexes MiB'
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_rows > 1000`);
    return Object.fromEntries(tables.map(({ name, ...row }) => [name, row]));
  }
});
