// @ts-check
/**
 * `npm run bench:scale`: measures one, two and four processes of the service on one database. Prints the processor time
 * of a request in the service and in the database. On a machine with few processors, the service, the database and the
 * load share them. Compare the processor times there, not the requests per second. Takes a minute. `--save` replaces the
 * figures of docs/performance.md.
 */
import { describeRun, isSaving, markdownTable, saveFigures } from './figures.js';
import { againAfterFailure, measure } from './measure.js';
import { routesOf } from './routes.js';
import { SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { seedCustomers } from './site.js';

const PROCESS_COUNTS = [1, 2, 4];
const ROUND_SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const CONNECTION_COUNT = 32;

await withSetup('1G', async ({ connection, pid, environment, start }) => {
  await seedCustomers(connection, 1, 20_000);
  const [returning, created] = await routesOf(environment.SIGNING_KEYS_FILE);
  /** @type {import('./figures.js').Table} */
  const rows = {};
  /** @type {import('./server.js').Server[]} */
  const servers = [];
  for (const processes of PROCESS_COUNTS) {
    while (servers.length < processes) servers.push(await start(SERVICE));
    for (const route of [returning, created]) {
      if (!route) continue;
      const measureFor = (/** @type {number} */ seconds) =>
        Promise.all(
          servers.map((server) => {
            const work = { port: server.port, requests: route.requests(), seconds };
            return measure(
              server,
              { pid, connection },
              { ...work, connections: Math.ceil(CONNECTION_COUNT / processes) },
            );
          }),
        );
      await againAfterFailure(route.name, () => measureFor(2));
      const all = await againAfterFailure(route.name, () => measureFor(ROUND_SECONDS));
      const rate = all.reduce((sum, each) => sum + each.rate, 0);
      const ofAll = (/** @type {'cpu' | 'p50' | 'p99'} */ what) =>
        all.reduce((sum, each) => sum + each[what], 0) / processes;
      // each measurement divides the processor time of the whole database by its own requests
      const databaseCpu = 1 / all.reduce((sum, each) => sum + 1 / each.databaseCpu, 0);
      rows[`${route.name}: ${processes} ${processes === 1 ? 'process' : 'processes'}`] = {
        'requests/s': Math.round(rate),
        'CPU µs': Math.round(ofAll('cpu')),
        'database µs': Math.round(databaseCpu),
        'requests/s per core of the database': Math.round(1e6 / databaseCpu),
        'p50 ms': Number(ofAll('p50').toFixed(1)),
        'p99 ms': Number(ofAll('p99').toFixed(1)),
      };
    }
  }
  for (const server of servers) await server.stop();
  console.table(rows);
  const description = await describeRun('npm run bench:scale', connection);
  console.log(description);
  if (isSaving()) saveFigures('scale-out', [description, markdownTable(rows)]);
});
