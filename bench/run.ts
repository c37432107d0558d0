/**
 * `npm run bench [-- ROUTE …]`: measures each route of the built service, which starts as in the image, on a private
 * durable MariaDB. The routes that the floor (bench/floor.ts) has are measured on both servers in turn. Each figure is
 * the median of five rounds. Takes about 11 minutes; with BENCH_SECONDS=1, 6 minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Table } from './support/figures.js';
import { columnsOf, type Measured, measure, median, medians, rounded } from './support/measure.js';
import { type Route, routesOf, SINGLE_USE } from './support/routes.js';
import { memory, SERVICE, type Server } from './support/server.js';
import { benchmark, type Setup } from './support/setup.js';
import { seedAllRoutes } from './support/site.js';

const FLOOR = ['--import', 'tsx', 'bench/floor.ts'];
const ROUND_COUNT = 5;
const START_COUNT = 5;
/** Enough for 14 rounds: of both servers, with warm-up and repetition. */
const CUSTOMER_COUNT = 14 * SINGLE_USE.count;
const WARM_UP_SECONDS = 3;
const ROUND_SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
/** Between the response sizes of the service and of the floor, which does the same work. */
const MAX_DIFFERENCE_BYTES = 10;
const wanted = process.argv.slice(2);

await benchmark('npm run bench', '1G', async (setup) => {
  await seedAllRoutes(setup.connection, CUSTOMER_COUNT);
  const starts = [];
  for (let round = 0; round < START_COUNT; round++) {
    const server = await setup.start(SERVICE);
    starts.push(server.startMs);
    await server.stop();
  }
  const service = await setup.start(SERVICE);
  const floor = await setup.start(FLOOR);
  await sleep(2_000);
  const atRest = memory(service.pid);
  const rows: Table = {};
  for (const route of await routesOf(setup.environment.SIGNING_KEYS_FILE)) {
    if (wanted.length > 0 && !wanted.includes(route.name)) continue;
    rows[route.name] = rowOf(await measureInTurn(route.hasFloor ? [service, floor] : [service], route, setup));
  }
  const ofProcess = {
    'ms to the first response': Math.round(median(starts)),
    'MB at rest': Math.round(atRest),
    'MB after the load': Math.round(memory(service.pid)),
  };
  return [rows, { 'the process': ofProcess }];
});

/** The rounds of each server. */
async function measureInTurn(servers: Server[], route: Route, setup: Setup): Promise<Measured[][]> {
  const measureRound = (server: Server, seconds: number) => {
    const url = route.isManagement ? server.managementUrl : server.url;
    const work = { url, requests: route.requests(), seconds: Math.min(seconds, route.maxSeconds ?? seconds) };
    return measure(server, setup, work);
  };
  for (const server of servers) await measureRound(server, WARM_UP_SECONDS);
  const rounds: Measured[][] = servers.map(() => []);
  for (let round = 0; round < ROUND_COUNT; round++)
    for (const [index, server] of servers.entries()) rounds[index]?.push(await measureRound(server, ROUND_SECONDS));
  return rounds;
}

function rowOf([ofService = [], ofFloor]: Measured[][]): Table[string] {
  const service = medians(ofService);
  const row = {
    ...columnsOf(service),
    statements: rounded(service.statements),
    'response bytes': Math.round(service.bytes),
  };
  if (!ofFloor) return row;
  const floor = medians(ofFloor);
  if (Math.abs(floor.bytes - service.bytes) > MAX_DIFFERENCE_BYTES)
    throw new Error(`a response of the floor has ${floor.bytes} bytes, and one of the service has ${service.bytes}`);
  const ratios = ofFloor.map(({ cpu }, index) => cpu / (ofService[index]?.cpu ?? Number.NaN));
  return {
    ...row,
    'floor CPU µs': Math.round(floor.cpu),
    'floor’s statements': rounded(floor.statements),
    ratio: (floor.cpu / service.cpu).toFixed(2),
    'lowest, highest': `${Math.min(...ratios).toFixed(2)}, ${Math.max(...ratios).toFixed(2)}`,
  };
}
