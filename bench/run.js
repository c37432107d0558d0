// @ts-check
/**
 * `npm run bench [-- --save] [-- --json FILE] [-- ROUTE …]`: compares the built service with the floor and with other
 * servers, on a private durable MariaDB. The service starts as in the image. The servers take turns, and each figure is
 * the median of five rounds. Takes about 14 minutes; with BENCH_SECONDS=1, 6 minutes. Prints a table with the ratios of
 * the saved run, docs/performance.json. `--save` replaces the saved run, the figures of docs/performance.md and
 * docs/performance.svg.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { describeRun } from './figures.js';
import { againAfterFailure, measure, median, medians } from './measure.js';
import { peers } from './peers.js';
import { report } from './report.js';
import { SINGLE_USE } from './requests.js';
import { assertSameResponses } from './responses.js';
import { routesOf } from './routes.js';
import { memory, SERVICE } from './server.js';
import { withSetup } from './setup.js';
import {
  seedAgent,
  seedCustomers,
  seedCustomersOfYesterday,
  seedRefreshTokens,
  seedTransfers,
  seedUsers,
} from './site.js';

const ROUND_COUNT = 5;
const START_COUNT = 5;
/** Enough for 14 rounds: of both servers, with warm-up and repetition. */
const CUSTOMER_COUNT = 14 * SINGLE_USE.count;
/** The callers of `external_id` (routes.js). */
const USER_COUNT = 20_000;
const WARM_UP_SECONDS = 3;
const { BENCH_SECONDS } = process.env;
const ROUND_SECONDS = Number(BENCH_SECONDS ?? 4);

const { values: options, positionals: wanted } = parseArgs({
  options: { save: { type: 'boolean' }, json: { type: 'string' } },
  allowPositionals: true,
});

if (options.save && (BENCH_SECONDS || wanted.length > 0))
  throw new Error('--save replaces the saved run, so it needs all routes and rounds of the usual length');
report(await withSetup('1G', run), options);

/** @param {import('./setup.js').Setup} setup @returns {Promise<import('./report.js').Run>} */
async function run({ connection, pid, environment, start }) {
  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  await seedTransfers(connection, CUSTOMER_COUNT);
  await seedRefreshTokens(connection, CUSTOMER_COUNT);
  await seedUsers(connection, USER_COUNT);
  await seedAgent(connection);
  await seedCustomersOfYesterday(connection, CUSTOMER_COUNT);
  const starts = [];
  for (let round = 0; round < START_COUNT; round++) {
    const server = await start(SERVICE);
    starts.push(server.startMs);
    await server.stop();
  }
  const service = await start(SERVICE);
  const floor = await start(['bench/floor.js']);
  await sleep(2_000);
  const atRest = memory(service.pid);
  const all = await routesOf(environment.SIGNING_KEYS_FILE);
  const routes = [];
  for (const route of all.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    await assertSameResponses(route, floor, service);
    const [ofFloor = [], ofService = []] = await compare([floor, service], route);
    const ratios = ofFloor.map(({ cpu }, index) => cpu / (ofService[index]?.cpu ?? Number.NaN));
    const spread = { lowest: Math.min(...ratios), highest: Math.max(...ratios) };
    routes.push({ name: route.name, floor: medians(ofFloor), service: medians(ofService), spread });
  }
  const underLoad = memory(service.pid);
  const others = [];
  for (const { name, program, requests } of wanted.length === 0 ? peers() : []) {
    try {
      const [measured = []] = await compare([await start(program)], { name, requests: () => requests });
      others.push({ name, ...medians(measured) });
    } catch (error) {
      console.error(`${name} IS NOT MEASURED:`, error); // the figures of the service must not be lost
    }
  }
  const description = await describeRun(`npm run bench${options.save ? ' -- --save' : ''}`, connection);
  return { description, routes, peers: others, start: median(starts), memory: { atRest, underLoad } };

  /**
   * Measures the servers in turn. The result has the rounds of each server.
   *
   * @param {import('./server.js').Server[]} servers @param {import('./routes.js').Route} route
   */
  async function compare(servers, route) {
    for (const server of servers) await measureRound(server, route, WARM_UP_SECONDS);
    /** @type {import('./measure.js').Measured[][]} */
    const rounds = servers.map(() => []);
    for (let round = 0; round < ROUND_COUNT; round++)
      for (const [index, server] of servers.entries())
        rounds[index]?.push(await measureRound(server, route, ROUND_SECONDS));
    return rounds;
  }

  /** @param {import('./server.js').Server} server @param {import('./routes.js').Route} route @param {number} seconds */
  function measureRound(server, { name, requests, management, maxSeconds }, seconds) {
    const port = management ? server.managementPort : server.port;
    const work = () => ({ port, requests: requests(), seconds: Math.min(seconds, maxSeconds ?? seconds) });
    return againAfterFailure(name, () => measure(server, { pid, connection }, work()));
  }
}
