/**
 * `npm run bench [-- ROUTE …]`: measures each route of the built service, which starts as in the image, on a private
 * durable MariaDB. The limit (bench/limit.js) is measured in turn with it, and so are the parts of the limit. Each
 * figure is the median of five rounds. Takes 9 minutes; with BENCH_SECONDS=1, 4 minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Table } from './support/figures.js';
import { columnsOf, type Measured, measure, median, medians, ROUND_SECONDS } from './support/measure.js';
import { shapeOf } from './support/raw-connection.js';
import { FIRST_CALL, RETURNING, type Route, routesOf } from './support/routes.js';
import { highestMemory, memory, SERVICE, type Server } from './support/server.js';
import { benchmark } from './support/setup.js';
import { seedAgent, seedCustomers } from './support/site.js';

const LIMIT = ['bench/limit.js'];
const LIMIT_ROW = 'limit';
const ROUND_COUNT = 5;
const START_COUNT = 5;
const CUSTOMER_COUNT = 100_000;
const WARM_UP_SECONDS = 3;
const wanted = process.argv.slice(2);
const isWanted = (name: string) => wanted.length === 0 || wanted.includes(name);

/** One of those that are measured in turn. */
interface Contender {
  server: Server;
  route: Route;
}

await benchmark('npm run bench', '1G', async (setup) => {
  const { connection, environment } = setup;
  const all = await routesOf(environment.SIGNING_KEYS_FILE);
  const names = [...all.map(({ name }) => name), LIMIT_ROW];
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`unknown: ${unknown.join(', ')}. The rows are: ${names.join(', ')}`);
  const routes = all.filter(({ name }) => isWanted(name));
  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  await seedAgent(connection);
  for (const { seed } of routes) await seed?.(connection);
  const starts = [];
  for (let round = 0; round < START_COUNT; round++) {
    const server = await setup.start(SERVICE);
    starts.push(server.startMs);
    await server.stop();
  }
  const service = await setup.start(SERVICE);
  const limit = await setup.start(LIMIT);
  await sleep(2_000);
  const atRest = memory(service.pid);
  const rows: Table = {};
  const returning = all.find(({ name }) => name === RETURNING) as Route;
  for (const route of routes) rows[route.name] = await rowOf(route);
  const ofProcess = {
    'ms to the first response': Math.round(median(starts)),
    'MB at rest': Math.round(atRest),
    'MB after the load': Math.round(memory(service.pid)),
    'MB, highest': Math.round(highestMemory(service.pid)),
  };
  return [rows, ...(isWanted(LIMIT_ROW) ? [await partsOfLimit()] : []), { 'the process': ofProcess }];

  async function rowOf(route: Route): Promise<Table[string]> {
    if (route.hasLimit) await assertSameResponses(route);
    const {
      ofService = [],
      ofLimit,
      later,
    } = await measureInTurn({
      ofService: { server: service, route },
      ...(route.hasLimit && { ofLimit: { server: limit, route } }),
      ...(route.name === FIRST_CALL && { later: { server: service, route: returning } }),
    });
    return {
      ...columnsOf(medians(ofService)),
      'response bytes': Math.round(medians(ofService).bytes),
      ...(ofLimit && comparison(ofService, ofLimit)),
      ...(later && { 'CPU, database to a later call': ratios(ofService, later) }),
    };
  }

  /** The limit, the same bytes with one signature and a share of the SELECT, and the same bytes alone. */
  async function partsOfLimit(): Promise<Table> {
    const at = (path: string): Contender => {
      const requests = returning.requests().map((request) => request.replace('/v2/customer/token', path));
      return { server: limit, route: { name: path, requests: () => requests } };
    };
    const measured = await measureInTurn({
      whole: { server: limit, route: returning },
      parts: at('/parts'),
      echo: at('/echo'),
    });
    const { whole = [], parts = [], echo = [] } = measured;
    return {
      'the limit, returning customer': {
        ...columnsOf(medians(whole)),
        'CPU to the parts': comparison(whole, parts).ratio,
      },
      'its parts: echo, signature, share of the SELECT': columnsOf(medians(parts)),
      'the echo alone': columnsOf(medians(echo)),
    };
  }

  /** Throws if the limit gives another status, other headers, or another length of a header or the body. */
  async function assertSameResponses(route: Route): Promise<void> {
    const [first = '', second = first] = route.requests();
    const [ofService, ofLimit] = [await shapeOf(service.url, first), await shapeOf(limit.url, second)];
    if (ofService !== ofLimit) throw new Error(`${route.name}: the service sends\n${ofService}\nthe limit\n${ofLimit}`);
  }

  /** The rounds of each contender. */
  async function measureInTurn(contenders: Record<string, Contender>): Promise<Record<string, Measured[]>> {
    const measureRound = ({ server, route }: Contender, seconds: number) => {
      const url = route.isManagement ? server.managementUrl : server.url;
      const work = { url, requests: route.requests(), seconds: Math.min(seconds, route.maxSeconds ?? seconds) };
      return measure(server, setup, work);
    };
    for (const contender of Object.values(contenders)) await measureRound(contender, WARM_UP_SECONDS);
    const rounds: Record<string, Measured[]> = {};
    for (let round = 0; round < ROUND_COUNT; round++)
      for (const [name, contender] of Object.entries(contenders))
        rounds[name] = [...(rounds[name] ?? []), await measureRound(contender, ROUND_SECONDS)];
    return rounds;
  }
});

/** Above 1, the service needs more than the limit. The lowest and the highest are those of one round. */
function comparison(ofService: Measured[], ofLimit: Measured[]) {
  const ofRounds = ofService.map(({ cpu }, index) => cpu / (ofLimit[index]?.cpu ?? Number.NaN));
  return {
    'limit CPU µs': Math.round(medians(ofLimit).cpu),
    'limit database µs': Math.round(medians(ofLimit).databaseCpu),
    ratio: (medians(ofService).cpu / medians(ofLimit).cpu).toFixed(2),
    'lowest, highest': `${Math.min(...ofRounds).toFixed(2)}, ${Math.max(...ofRounds).toFixed(2)}`,
  };
}

function ratios(first: Measured[], later: Measured[]): string {
  const ratio = (figure: 'cpu' | 'databaseCpu') => (medians(first)[figure] / medians(later)[figure]).toFixed(2);
  return `${ratio('cpu')}, ${ratio('databaseCpu')}`;
}
