// @ts-check
/**
 * `npm run bench`: the cookie grant of the built service against the floor, on a private durable MariaDB. CPU microseconds
 * of the server process per request, and the ratio floor / service; medians of three rounds in turn. Takes a minute.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from '../scripts/build.js';
import { startMariadb } from '../scripts/mariadb.js';
import { load } from './load.js';
import { startServer } from './server.js';

const ROUNDS = 3;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const CONNECTIONS = 32;
const IDENTITIES = 2_000;
const ORGANIZATION = '390e44e6-f1e6-4368-86dd-b74514508c2e';
const BODY = JSON.stringify({
  grant_type: 'cookie',
  client_id: 'site',
  response_type: 'token',
  organization_id: ORGANIZATION,
});

buildIfStale();
const folder = mkdtempSync(join(tmpdir(), 'bench-'));
const database = await startMariadb({ durable: true, bufferPool: '512M' });
/** @typedef {import('./server.js').Server} Server */
/** @type {Server[]} */
const servers = [];
try {
  const environment = await prepare();
  const service = await startServer('dist/main.js', environment, join(folder, 'service.log'));
  const floor = await startServer('bench/floor.js', environment, join(folder, 'floor.log'));
  servers.push(service, floor);
  const cookies = await newBrowsers(service.port);
  console.table({
    'returning customer': await compare(floor, service, cookies),
    'new customer': await compare(floor, service, []),
  });
  console.log(`memory of the service after it all: ${Math.round(memory(service) / 1024)} MB`);
} finally {
  for (const { child } of servers) child.kill('SIGKILL');
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function prepare() {
  const keys = join(folder, 'keys.json');
  const registry = join(folder, 'registry.yaml');
  writeFileSync(keys, execFileSync(process.execPath, ['dist/cli.js', 'keys', 'generate']));
  writeFileSync(
    registry,
    `organizations: [{ id: ${ORGANIZATION}, name: Bench }]\nclients: [{ client_id: site, name: Site, client_type: web }]\n`,
  );
  return {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    DATABASE_URL: await database.createDatabase('bench'),
    MIGRATE_ON_START: 'true',
    SIGNING_KEYS_FILE: keys,
    REGISTRY_FILE: registry,
    AUTH_URL: 'http://localhost',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    RATE_LIMIT: 'identities=999999999/60,tokens=999999999/60', // on, and never reached
  };
}

/** @param {number} port */
async function newBrowsers(port) {
  const cookies = [];
  for (let made = 0; made < IDENTITIES; made++) {
    const answer = await fetch(`http://127.0.0.1:${port}/v2/customer/token`, { method: 'POST', body: BODY });
    cookies.push(
      answer.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; '),
    );
    await answer.text();
  }
  return cookies;
}

/** @param {Server} floor @param {Server} service @param {string[]} cookies */
async function compare(floor, service, cookies) {
  /** @type {Record<'floor' | 'service', Awaited<ReturnType<typeof measure>>[]>} */
  const rounds = { floor: [], service: [] };
  await measure(floor, cookies, 1);
  await measure(service, cookies, 2);
  for (let round = 0; round < ROUNDS; round++) {
    rounds.floor.push(await measure(floor, cookies, SECONDS));
    rounds.service.push(await measure(service, cookies, SECONDS));
  }
  const floorCpu = median(rounds.floor.map(({ cpu }) => cpu));
  const serviceCpu = median(rounds.service.map(({ cpu }) => cpu));
  return {
    'requests/s': Math.round(median(rounds.service.map(({ rate }) => rate))),
    'floor requests/s': Math.round(median(rounds.floor.map(({ rate }) => rate))),
    'CPU µs': Math.round(serviceCpu),
    'floor CPU µs': Math.round(floorCpu),
    ratio: Number((floorCpu / serviceCpu).toFixed(2)),
    'p50 ms': Number(median(rounds.service.map(({ p50 }) => p50)).toFixed(1)),
    'p99 ms': Number(median(rounds.service.map(({ p99 }) => p99)).toFixed(1)),
  };
}

/** @param {Server} server @param {string[]} cookies @param {number} seconds */
async function measure(server, cookies, seconds) {
  const before = cpuTime(server);
  const start = performance.now();
  const { requests, failed, p50, p99 } = await load({
    port: server.port,
    connections: CONNECTIONS,
    seconds,
    path: '/v2/customer/token',
    body: BODY,
    cookies,
  });
  if (failed > 0) throw new Error(`${failed} of ${requests} requests failed`);
  const cpu = ((cpuTime(server) - before) * 1e6) / requests;
  return { cpu, rate: (requests * 1000) / (performance.now() - start), p50, p99 };
}

/** Seconds of processor time that a process has used. @param {Server} server */
function cpuTime({ child }) {
  const [, ...fields] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ');
  const [user = 0, system = 0] = (fields[0] ?? '').split(' ').slice(11, 13).map(Number);
  return (user + system) / 100;
}

/** Resident kilobytes. @param {Server} server */
function memory({ child }) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);
}

/** @param {number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
