// @ts-check
/**
 * `npm run bench:growth`: measures returning and new customers with a small database, with millions of customers, codes
 * and ended tokens, and during a purge. By default there are 1 and 5 million customers, 10 million expired codes and as
 * many ended tokens; `GROWTH=1,5,10` sets these numbers in millions. Takes 15 minutes and 10 GB of disk. `--save`
 * replaces the figures of docs/performance.md.
 */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeRun, isSaving, markdownTable, saveFigures } from './figures.js';
import { againAfterFailure, measure, medians } from './measure.js';
import { routesOf } from './routes.js';
import { SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { CLIENT, idOf, seedCustomers } from './site.js';

const [FIRST_MILLIONS = 1, SECOND_MILLIONS = 5, EXPIRED_MILLIONS = 10] = (process.env.GROWTH ?? '1,5,10')
  .split(',')
  .map(Number);
const ROWS_PER_INSERT = 1_000_000;
/** Customers of the small database. */
const SMALL_CUSTOMER_COUNT = 20_000;
const ROUND_SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const ROUND_COUNT = 5;
const MAX_DIRTY_PAGE_COUNT = 1_000;

await withSetup('2G', async ({ connection, pid, environment, start }) => {
  /** @type {import('./figures.js').Table} */
  const rows = {};
  const measureWith = async (/** @type {string} */ size, /** @type {number} */ customers) => {
    const routes = (await routesOf(environment.SIGNING_KEYS_FILE, customers)).slice(0, 2);
    const service = await start(SERVICE);
    for (const { name, requests } of routes) {
      const measureFor = (/** @type {number} */ seconds) =>
        againAfterFailure(name, () =>
          measure(service, { pid, connection }, { port: service.port, requests: requests(), seconds }),
        );
      await measureFor(2);
      const rounds = [];
      while (rounds.length < ROUND_COUNT) rounds.push(await measureFor(ROUND_SECONDS));
      const { rate, cpu, databaseCpu, p50, p99, written } = medians(rounds);
      rows[`${name}, ${size}`] = {
        'requests/s': Math.round(rate),
        'CPU µs': Math.round(cpu),
        'database µs': Math.round(databaseCpu),
        'p50 ms': Number(p50.toFixed(1)),
        'p99 ms': Number(p99.toFixed(1)),
        'bytes written': Math.round(written),
      };
    }
    await service.stop();
    console.table(rows);
  };
  await seed(1, SMALL_CUSTOMER_COUNT);
  await measureWith('20,000 customers', SMALL_CUSTOMER_COUNT);
  await seed(SMALL_CUSTOMER_COUNT + 1, FIRST_MILLIONS * 1e6);
  await measureWith(`${FIRST_MILLIONS} million`, FIRST_MILLIONS * 1e6);
  await seed(FIRST_MILLIONS * 1e6 + 1, SECOND_MILLIONS * 1e6);
  await measureWith(`${SECOND_MILLIONS} million`, SECOND_MILLIONS * 1e6);
  await seedExpired(EXPIRED_MILLIONS * 1e6);
  await measureWith(
    `${SECOND_MILLIONS} million, ${EXPIRED_MILLIONS} million expired codes and as many ended tokens`,
    SECOND_MILLIONS * 1e6,
  );
  const purge = spawn(process.execPath, ['dist/cli.js', 'purge'], { env: environment, stdio: 'ignore' });
  await measureWith(`${SECOND_MILLIONS} million, and a purge at work`, SECOND_MILLIONS * 1e6);
  if (purge.exitCode !== null) throw new Error('the purge ended before the measurement did');
  purge.kill('SIGKILL');
  const tables = await sizes();
  console.table(tables);
  const description = await describeRun('npm run bench:growth', connection);
  console.log(description);
  if (isSaving()) saveFigures('growth', [description, markdownTable(rows), markdownTable(tables)]);

  /** @param {number} from @param {number} to */
  async function seed(from, to) {
    await seedCustomers(connection, from, to);
    await flushed();
  }

  /** @param {number} count */
  async function seedExpired(count) {
    for (let first = 1; first <= count; first += ROWS_PER_INSERT) {
      const numbers = `seq_${first}_to_${first + ROWS_PER_INSERT - 1}`;
      const expires = 'NOW(3) - INTERVAL (seq % 3600) SECOND';
      const customer = idOf('customer', `(1 + seq % ${SECOND_MILLIONS * 1e6})`);
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
  async function flushed() {
    await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = 0');
    let dirtyPages;
    do {
      await sleep(1_000);
      const [rows] = await connection.query("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'");
      dirtyPages = Number(/** @type {{ Value: string }[]} */ (rows)[0]?.Value);
    } while (dirtyPages > MAX_DIRTY_PAGE_COUNT);
    await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT');
  }

  /** @returns {Promise<import('./figures.js').Table>} */
  async function sizes() {
    await connection.query('ANALYZE TABLE customer, browser, session, ended');
    const [result] = await connection.query(`
      SELECT table_name AS name, table_rows AS estimated_rows, data_length AS data, index_length AS indexes
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_rows > 1000`);
    const tables = /** @type {{ name: string, estimated_rows: number, data: number, indexes: number }[]} */ (result);
    const megabytes = (/** @type {number} */ bytes) => Math.round(bytes / 2 ** 20);
    return Object.fromEntries(
      tables.map(({ name, estimated_rows, data, indexes }) => [
        name,
        { rows: Number(estimated_rows), 'data MiB': megabytes(data), 'indexes MiB': megabytes(indexes) },
      ]),
    );
  }
});
