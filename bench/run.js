// @ts-check
/**
 * `npm run bench [-- --save] [-- ROUTE …]`: the built service in its default production configuration against the floor
 * (and, with `--peers`, against other servers), on a private durable MariaDB, in turn, medians of three rounds; at most ten minutes. Prints a table and
 * the difference to the saved run, docs/performance.json; `--save` makes this the saved run and draws docs/performance.svg.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import mysql from 'mysql2/promise';
import { buildIfStale } from '../scripts/build.js';
import { startMariadb } from '../scripts/mariadb.js';
import { checkSameAnswers } from './answers.js';
import { measure, median, medians } from './measure.js';
import { report } from './report.js';
import { routesOf } from './routes.js';
import { memory, startServer } from './server.js';
import { environmentOf, seedCustomers, seedTransfers } from './site.js';

const ROUNDS = 3;
const STARTS = 5;
const CUSTOMERS = 100_000;
const WARM_UP = 2;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);

const { values: options, positionals: wanted } = parseArgs({
  options: { save: { type: 'boolean' }, json: { type: 'string' } },
  allowPositionals: true,
});

buildIfStale();
const folder = mkdtempSync(join(tmpdir(), 'bench-'));
const database = await startMariadb({ durable: true, bufferPool: '1G' });
/** @type {import('./server.js').Server[]} */
const servers = [];
try {
  const environment = environmentOf(folder, await database.createDatabase('bench'));
  await start('dist/main.js'); // makes the tables
  const connection = await mysql.createConnection(database.url('bench'));
  await seedCustomers(connection, 1, CUSTOMERS);
  await seedTransfers(connection, CUSTOMERS);
  const starts = [];
  for (let round = 0; round < STARTS; round++) starts.push((await start('dist/main.js')).started);
  const service = await start('dist/main.js');
  const floor = await start('bench/floor.js');
  await sleep(2_000);
  const atRest = memory(service.pid);
  const observed = { pid: database.pid, connection };
  const routes = (await routesOf(environment.SIGNING_KEYS_FILE)).filter(
    ({ name }) => wanted.length === 0 || wanted.includes(name),
  );
  const results = [];
  for (const route of routes) {
    await checkSameAnswers(route, floor, service);
    results.push({ name: route.name, ...(await compare(route)) });
  }
  await connection.end();
  report({ routes: results, start: median(starts), memory: { atRest, underLoad: memory(service.pid) } }, options);

  /** @param {import('./routes.js').Route} route */
  async function compare({ requests, management }) {
    /** @type {Record<'floor' | 'service', import('./measure.js').Measured[]>} */
    const rounds = { floor: [], service: [] };
    const look = (/** @type {import('./server.js').Server} */ server, /** @type {number} */ seconds) => {
      const port = management ? server.managementPort : server.port;
      return measure(server, observed, { port, requests: requests(), seconds });
    };
    await look(floor, WARM_UP);
    await look(service, WARM_UP);
    for (let round = 0; round < ROUNDS; round++) {
      rounds.floor.push(await look(floor, SECONDS));
      rounds.service.push(await look(service, SECONDS));
    }
    return { floor: medians(rounds.floor), service: medians(rounds.service) };
  }

  /** @param {string} file */
  async function start(file) {
    const server = await startServer(file, environment, join(folder, `${servers.length}.log`));
    servers.push(server);
    return server;
  }
} finally {
  for (const server of servers) server.kill();
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
}
