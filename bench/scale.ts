/**
 * `npm run bench:scale`: measures one, two and four processes of the service on one database. Where they
 * share few processors with the database and the load, compare the processor times, not the rates. Takes a minute.
 */
import type { Table } from './support/figures.js';
import { columnsOf, type Measured, measure } from './support/measure.js';
import { type Route, visits } from './support/routes.js';
import { SERVICE, type Server } from './support/server.js';
import { benchmark } from './support/setup.js';
import { seedCustomers } from './support/site.js';

const PROCESS_COUNTS = [1, 2, 4];
const WARM_UP_SECONDS = 2;
const ROUND_SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const CONNECTION_COUNT = 32;

await benchmark('npm run bench:scale', '1G', async (setup) => {
  await seedCustomers(setup.connection, 1, 20_000);
  const rows: Table = {};
  const servers: Server[] = [];
  for (const processes of PROCESS_COUNTS) {
    while (servers.length < processes) servers.push(await setup.start(SERVICE));
    for (const route of visits()) {
      await measureAll(route, WARM_UP_SECONDS);
      rows[`${route.name}, processes: ${processes}`] = columnsOf(together(await measureAll(route, ROUND_SECONDS)));
    }
  }
  return [rows];

  function measureAll({ requests }: Route, seconds: number): Promise<Measured[]> {
    const connections = Math.ceil(CONNECTION_COUNT / servers.length);
    const each = servers.map((server) =>
      measure(server, setup, { url: server.url, requests: requests(), seconds, connections }),
    );
    return Promise.all(each);
  }
});

/** The sum of the rates, and the mean of what a request took. */
function together(all: Measured[]): Measured {
  const mean = (figure: keyof Measured) => all.reduce((sum, each) => sum + each[figure], 0) / all.length;
  // each measurement divides the processor time of the whole database by its own requests
  const databaseCpu = 1 / all.reduce((sum, each) => sum + 1 / each.databaseCpu, 0);
  const rate = all.length * mean('rate');
  return { ...(all[0] as Measured), rate, cpu: mean('cpu'), databaseCpu, p50: mean('p50'), p99: mean('p99') };
}
