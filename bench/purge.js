// @ts-check
/**
 * `npm run bench:purge`: measures the cookie grant of returning customers before and during a purge of 300,000 expired
 * codes, on a private durable MariaDB. Also prints the purged rows per second. Takes 30 s. `--save`
 * replaces the figures of docs/performance.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeRun, isSaving, markdownTable, saveFigures } from './figures.js';
import { load } from './load.js';
import { median } from './measure.js';
import { routesOf } from './routes.js';
import { SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { CLIENT, idOf, seedCustomers } from './site.js';

const ROW_COUNT = 300_000;
const CONNECTION_COUNT = 16;
const CUSTOMER_COUNT = 20_000;
const BASELINE_ROUND_COUNT = 6;
const ROUND_SECONDS = 1;
const PURGE_TIMEOUT_MS = 35_000;
const INSERT_EXPIRED_CODES = `
  INSERT INTO session (id, kind, customer_id, depth, epoch, client_id, code_hash, created_at, expires_at)
  SELECT ${idOf('code')}, 'code', ${idOf('customer', `(1 + seq % ${CUSTOMER_COUNT})`)}, 1, 0, '${CLIENT}', SHA2(seq, 256), NOW(3),
    NOW(3) - INTERVAL 1 DAY - INTERVAL seq SECOND
  FROM seq_1_to_${ROW_COUNT}`;

await withSetup('512M', async ({ connection, environment, start }) => {
  const { port } = await start(SERVICE);
  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  await connection.query(INSERT_EXPIRED_CODES);
  const [returning] = await routesOf(environment.SIGNING_KEYS_FILE);
  const requests = returning?.requests() ?? [];
  const measureRound = () => load({ port, requests, connections: CONNECTION_COUNT, seconds: ROUND_SECONDS });
  for (let warm = 0; warm < 2; warm++) await measureRound();
  const before = [];
  while (before.length < BASELINE_ROUND_COUNT) before.push(await measureRound());
  const [during, purged] = await purgeUnder(measureRound, environment, connection);
  const rows = { 'before the purge': row(before), 'during the purge': row(during) };
  const rowsPerSecond = Math.round(purged.rows / purged.seconds).toLocaleString('en-US');
  const result = `The purge deleted ${rowsPerSecond} rows per second, and no request failed.`;
  const description = await describeRun('npm run bench:purge', connection);
  console.table(rows);
  console.log(`${description}\n${result}`);
  if (isSaving()) saveFigures('purge', [description, markdownTable(rows), result]);
});

/** @typedef {Awaited<ReturnType<typeof load>>} Round */

/**
 * Purges, and measures rounds of load meanwhile. A round counts only if it ends before the purge does.
 *
 * @param {() => Promise<Round>} measureRound
 * @param {NodeJS.ProcessEnv} env
 * @param {import('mysql2/promise').Connection} database
 * @returns {Promise<[Round[], { rows: number, seconds: number }]>}
 */
async function purgeUnder(measureRound, env, database) {
  const deleted = async () => {
    const [rows] = await database.query("SHOW GLOBAL STATUS LIKE 'Handler_delete'");
    return Number(/** @type {{ Value: string }[]} */ (rows)[0]?.Value);
  };
  const start = await deleted();
  const purge = spawn(process.execPath, ['dist/cli.js', 'purge'], { env, stdio: 'ignore', timeout: PURGE_TIMEOUT_MS });
  const ended = once(purge, 'exit').then(() => performance.now());
  while (purge.exitCode === null && (await deleted()) === start) await sleep(10);
  const begun = performance.now();
  /** @type {Round[]} */
  const rounds = [];
  const runs = () => purge.exitCode === null && purge.signalCode === null;
  while (runs()) {
    const round = await measureRound();
    if (runs() || rounds.length === 0) rounds.push(round);
  }
  const seconds = ((await ended) - begun) / 1000;
  return [rounds, { rows: (await deleted()) - start, seconds }];
}

/** @param {Round[]} rounds */
function row(rounds) {
  const of = (/** @type {'rate' | 'p50' | 'p99'} */ what) => rounds.map((each) => each[what]);
  return {
    'requests/s': Math.round(median(of('rate'))),
    'p50 ms': Number(median(of('p50')).toFixed(1)),
    'p99 ms': Number(median(of('p99')).toFixed(1)),
    'p99 ms, worst second': Number(Math.max(...of('p99')).toFixed(1)),
  };
}
