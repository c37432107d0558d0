// @ts-check
/**
 * `npm run bench:registry [-- COUNT …]`: measures the service with 10, 1,000, 10,000 and 100,000 clients, on a private
 * durable MariaDB: applying a registry file, applying it again, the start, the memory, the idle processor time, and the
 * cookie grant of returning customers while one client changes each second. Takes about 5 minutes.
 */
import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { load } from './load.js';
import { clearRegistry, seedRegistry, writeRegistryFile } from './registry-site.js';
import { routesOf } from './routes.js';
import { cpuTime, memory, SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { seedCustomers } from './site.js';

const COUNTS = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [10, 1_000, 10_000, 100_000];
/** A larger registry is created by the admin API (docs/operations.md). The benchmark writes its rows directly. */
const MAX_FILE_CLIENTS = 10_000;
const CUSTOMER_COUNT = 20_000;
const CONNECTION_COUNT = 16;
const IDLE_SECONDS = 10;
const LOAD_SECONDS = 10;
const WARM_UP_SECONDS = 3;
const CHANGE_INTERVAL_MS = 1_000;
const ADMIN_TOKEN = 'admin-token-of-the-benchmark-0123456789';
const APPLY_TIMEOUT_MS = 600_000;

const run = promisify(execFile);

await withSetup('1G', async ({ connection, environment, start }) => {
  await seedCustomers(connection, 1, CUSTOMER_COUNT);
  const folder = dirname(environment.REGISTRY_FILE);
  const [returning] = await routesOf(environment.SIGNING_KEYS_FILE);
  /** @type {Record<string, object>} */
  const rows = {};
  for (const count of COUNTS) {
    const hasFile = count <= MAX_FILE_CLIENTS;
    const path = hasFile ? writeRegistryFile(folder, count) : environment.REGISTRY_FILE;
    await clearRegistry(connection);
    const [first, again] = [await apply(path), await apply(path)];
    if (!hasFile) await seedRegistry(connection, count);
    const server = await start(SERVICE, { ADMIN_TOKENS: `bench:registry:${ADMIN_TOKEN}`, REGISTRY_FILE: path });
    await sleep(2_000);
    const atRest = memory(server.pid);
    const idle = await idleCpu(server.pid);
    const measureFor = (/** @type {number} */ seconds) =>
      load({ port: server.port, requests: returning?.requests() ?? [], connections: CONNECTION_COUNT, seconds });
    await measureFor(WARM_UP_SECONDS);
    const quiet = await measureFor(LOAD_SECONDS);
    const changes = changeEachSecond(server.managementPort);
    const during = await measureFor(LOAD_SECONDS);
    const changed = await changes.stop();
    rows[count.toLocaleString('en')] = {
      'apply s': hasFile ? first.toFixed(1) : '',
      'again s': hasFile ? again.toFixed(1) : '',
      'ready ms': Math.round(server.startMs),
      'MB at rest': Math.round(atRest),
      'MB after the load': Math.round(memory(server.pid)),
      'idle CPU %': idle.toFixed(2),
      'p50, p99 ms': milliseconds(quiet),
      'p50, p99 ms with changes': milliseconds(during),
      changes: changed,
    };
    await server.stop();
  }
  console.table(rows);

  /** Seconds of one command. @param {string} path */
  async function apply(path) {
    const begun = performance.now();
    const command = ['dist/cli.js', 'registry', 'apply', path];
    await run(process.execPath, command, { env: environment, timeout: APPLY_TIMEOUT_MS, maxBuffer: 2 ** 28 });
    return (performance.now() - begun) / 1000;
  }
});

/** Changes one client each second by the admin API. @param {number} port */
function changeEachSecond(port) {
  let count = 0;
  const url = `http://127.0.0.1:${port}/admin/clients`;
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const send = async (/** @type {string} */ path, /** @type {string} */ method, /** @type {object} */ body) => {
    const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };
  const stopped = new AbortController();
  const all = (async () => {
    const name = `changed-${Date.now()}`;
    await send('', 'POST', { client_id: name, name, client_type: 'web' });
    while (!stopped.signal.aborted) {
      await send(`/${name}`, 'PATCH', { name: `Change ${++count}` });
      await sleep(CHANGE_INTERVAL_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopped.abort();
      await all;
      return count;
    },
  };
}

/** Percent of one core that a process uses without requests. @param {number} pid */
async function idleCpu(pid) {
  const before = cpuTime(pid);
  await sleep(IDLE_SECONDS * 1000);
  return ((cpuTime(pid) - before) / IDLE_SECONDS) * 100;
}

/** @param {{ p50: number, p99: number }} times */
function milliseconds({ p50, p99 }) {
  return `${p50.toFixed(1)}, ${p99.toFixed(1)}`;
}
