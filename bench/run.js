// @ts-check
/**
 * `npm run bench [-- --save] [-- --json FILE] [-- ROUTE …]`: compares the built service with the floor and with other
 * servers, on a private durable MariaDB. The service starts as in the image. The servers take turns, and each figure is
 * the median of three rounds. Takes at most 10 minutes. Prints a table with the ratios of the saved run,
 * docs/performance.json. `--save` replaces the saved run and draws docs/performance.svg.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { measure, median, medians } from './measure.js';
import { peers } from './peers.js';
import { report } from './report.js';
import { assertSameResponses } from './responses.js';
import { routesOf } from './routes.js';
import { memory, SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { seedAgent, seedCustomers, seedTransfers } from './site.js';

const ROUND_COUNT = 3;
const START_COUNT = 5;
const CUSTOMER_COUNT = 100_000;
const WARM_UP_SECONDS = 2;
const ROUND_SECONDS = Number(process.env.BENCH_SECONDS ?? 5);

const { values: options, positionals: wanted } = parseArgs({
  options: { save: { type: 'boolean' }, json: { type: 'string' } },
  allowPositionals: true,
});

report(await withSetup('1G', run), options);

/** @param {import('./setup.js').Setup} setup @returns {Promise<import('./report.js').Run>} */
async function run({ connection, pid, environment, start }) {
  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  await seedTransfers(connection, CUSTOMER_COUNT);
  await seedAgent(connection);
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
    const [ofFloor, ofService] = await compare([floor, service], route);
    routes.push({ name: route.name, floor: ofFloor, service: ofService });
  }
  const underLoad = memory(service.pid);
  const others = [];
  for (const { name, program, requests } of wanted.length === 0 ? peers() : []) {
    const [measured] = await compare([await start(program)], { name, requests: () => requests });
    others.push({ name, ...measured });
  }
  return { routes, peers: others, start: median(starts), memory: { atRest, underLoad } };

  /**
   * @param {import('./server.js').Server[]} servers @param {import('./routes.js').Route} route
   */
  async function compare(servers, { requests, management }) {
    const measureOnce = (/** @type {import('./server.js').Server} */ server, /** @type {number} */ seconds) => {
      const port = management ? server.managementPort : server.port;
      return measure(server, { pid, connection }, { port, requests: requests(), seconds });
    };
    for (const server of servers) await measureOnce(server, WARM_UP_SECONDS);
    /** @type {import('./measure.js').Measured[][]} */
    const rounds = servers.map(() => []);
    for (let round = 0; round < ROUND_COUNT; round++)
      for (const [index, server] of servers.entries()) rounds[index]?.push(await measureOnce(server, ROUND_SECONDS));
    return /** @type {[import('./measure.js').Measured, import('./measure.js').Measured]} */ (rounds.map(medians));
  }
}
