// @ts-check
/**
 * `npm run bench:scale`: one, two and four processes of the service on one database, with pools of several sizes, and what each of
 * them asks of the processor and of the database. On few processors the processes share them with the database and the
 * load: the requests a second end there, and what counts is the cost of a request on either side.
 */
import { availableParallelism } from 'node:os';
import { measure } from './measure.js';
import { routesOf } from './routes.js';
import { SERVICE } from './server.js';
import { seedCustomers } from './site.js';
import { onStage } from './stage.js';

const PROCESSES = [1, 2, 4];
const POOLS = [2, 4, 12];
const SECONDS = 5;
const CONNECTIONS = 32;

await onStage('1G', async ({ connection, pid, environment, start }) => {
  await seedCustomers(connection, 1, 20_000);
  const [returning, created] = await routesOf(environment.SIGNING_KEYS_FILE);
  /** @type {Record<string, object>} */
  const rows = {};
  for (const pool of POOLS) {
    /** @type {import('./server.js').Server[]} */
    const servers = [];
    for (const many of PROCESSES) {
      while (servers.length < many) servers.push(await start(SERVICE, { DB_POOL_SIZE: String(pool) }));
      for (const route of [returning, created]) {
        if (!route) continue;
        const look = (/** @type {number} */ seconds) =>
          Promise.all(
            servers.map((server) => {
              const work = { port: server.port, requests: route.requests(), seconds };
              return measure(server, { pid, connection }, { ...work, connections: Math.ceil(CONNECTIONS / many) });
            }),
          );
        await look(2);
        const all = await look(SECONDS);
        const rate = all.reduce((sum, each) => sum + each.rate, 0);
        const ofAll = (/** @type {'cpu' | 'p50' | 'p99'} */ what) =>
          all.reduce((sum, each) => sum + each[what], 0) / many;
        // each counts the whole database for its own requests
        const databaseCpu = 1 / all.reduce((sum, each) => sum + 1 / each.databaseCpu, 0);
        rows[`${route.name}: ${many} × pool ${pool}`] = {
          'requests/s': Math.round(rate),
          'CPU µs': Math.round(ofAll('cpu')),
          'database µs': Math.round(databaseCpu),
          'ceiling of the database, requests/s a processor': Math.round(1e6 / databaseCpu),
          'p50 ms': Number(ofAll('p50').toFixed(1)),
          'p99 ms': Number(ofAll('p99').toFixed(1)),
        };
      }
    }
    for (const server of servers) await server.stop();
  }
  console.log(`${availableParallelism()} processors for all of it`);
  console.table(rows);
});
