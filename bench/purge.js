// @ts-check
/**
 * `node bench/purge.js`: what the purge of 300,000 expired codes does to returning customers' cookie grants, on a private
 * durable MariaDB. Rows per second of the purge, and times of the requests before and during it. Takes half a minute.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from './load.js';
import { median } from './measure.js';
import { routesOf } from './routes.js';
import { SERVICE } from './server.js';
import { ORGANIZATION, seedCustomers } from './site.js';
import { onStage } from './stage.js';

const ROWS = 300_000;
const CONNECTIONS = 16;
const CUSTOMERS = 20_000;
/** Looks at the load before the purge, of a second each; and seconds that the purge may take. */
const BEFORE = 6;
const LONGEST = 35;
const EXPIRED = `
  INSERT INTO one_time_code (hash, kind, client_id, subject, organization_id, expires_at)
  SELECT SHA2(seq, 256), 'transfer', 'site', UUID(), '${ORGANIZATION}', NOW(3) - INTERVAL seq SECOND FROM seq_1_to_${ROWS}`;

await onStage('512M', async ({ connection, environment, start }) => {
  const { port } = await start(SERVICE);
  await seedCustomers(connection, 1, CUSTOMERS);
  await connection.query(EXPIRED);
  const [returning] = await routesOf(environment.SIGNING_KEYS_FILE);
  const requests = returning?.requests() ?? [];
  const look = () => load({ port, requests, connections: CONNECTIONS, seconds: 1 });
  for (let warm = 0; warm < 2; warm++) await look();
  const before = [];
  while (before.length < BEFORE) before.push(await look());
  const [during, purged] = await purgeUnder(look, environment, connection);
  console.table({ 'before the purge': row(before), 'during the purge': row(during) });
  console.log(`purged ${purged.rows} rows, ${Math.round(purged.rows / purged.seconds)} rows/s`);
});

/** @typedef {Awaited<ReturnType<typeof load>>} Load */

/**
 * Purges, and meanwhile looks at the load; only the looks count that lie wholly within the purge.
 *
 * @param {() => Promise<Load>} look
 * @param {NodeJS.ProcessEnv} env
 * @param {import('mysql2/promise').Connection} database
 * @returns {Promise<[Load[], { rows: number, seconds: number }]>}
 */
async function purgeUnder(look, env, database) {
  const deleted = async () => {
    const [rows] = await database.query("SHOW GLOBAL STATUS LIKE 'Handler_delete'");
    return Number(/** @type {{ Value: string }[]} */ (rows)[0]?.Value);
  };
  const start = await deleted();
  const purge = spawn(process.execPath, ['dist/cli.js', 'purge'], { env, stdio: 'ignore', timeout: LONGEST * 1000 });
  const ended = once(purge, 'exit').then(() => performance.now());
  while (purge.exitCode === null && (await deleted()) === start) await sleep(10);
  const begun = performance.now();
  /** @type {Load[]} */
  const looks = [];
  const runs = () => purge.exitCode === null && purge.signalCode === null;
  while (runs()) {
    const seen = await look();
    if (runs() || looks.length === 0) looks.push(seen);
  }
  const seconds = ((await ended) - begun) / 1000;
  return [looks, { rows: (await deleted()) - start, seconds }];
}

/** @param {Load[]} looks */
function row(looks) {
  const of = (/** @type {'rate' | 'p50' | 'p99'} */ what) => looks.map((each) => each[what]);
  return {
    'requests/s': Math.round(median(of('rate'))),
    'p50 ms': Number(median(of('p50')).toFixed(1)),
    'p99 ms': Number(median(of('p99')).toFixed(1)),
    'p99 ms, worst second': Number(Math.max(...of('p99')).toFixed(1)),
  };
}
