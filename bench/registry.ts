/**
 * `npm run bench:registry [-- COUNT …]`: measures the service after 10 clients were added, then 1,000, 10,000 and
 * 100,000 more: the start, the memory, the idle processor time, and the cookie grant of returning customers while one
 * client changes each second. Takes about 5 minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Table } from './support/figures.js';
import { load, rounded, type Times } from './support/measure.js';
import { seedRegistry } from './support/registries.js';
import { visits } from './support/routes.js';
import { cpuTime, memory, SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';
import { seedCustomers } from './support/site.js';

const [, , ...parameters] = process.argv;
const COUNTS = parameters.length > 0 ? parameters.map(Number) : [10, 1_000, 10_000, 100_000];
const IDLE_SECONDS = 10;
const LOAD_SECONDS = Number(process.env.BENCH_SECONDS ?? 10);
const CONNECTION_COUNT = 16;
const CHANGE_INTERVAL_MS = 1_000;
const ADMIN_TOKEN = 'admin-token-of-the-benchmark-0123456789';

await benchmark('npm run bench:registry', '1G', async ({ connection, start }) => {
  await seedCustomers(connection, 1, 20_000);
  const [returning] = visits();
  const rows: Table = {};
  let clients = 0;
  for (const count of COUNTS) {
    await seedRegistry(connection, count);
    clients += count;
    const server = await start(SERVICE, { ADMIN_TOKENS: `bench:registry:${ADMIN_TOKEN}` });
    await sleep(2_000);
    const [atRest, cpuBefore] = [memory(server.pid), cpuTime(server.pid)];
    await sleep(IDLE_SECONDS * 1000);
    const idleRatio = (cpuTime(server.pid) - cpuBefore) / IDLE_SECONDS;
    const work = { url: server.url, requests: returning.requests(), seconds: LOAD_SECONDS };
    const measure = () => load({ ...work, connections: CONNECTION_COUNT });
    await measure(); // warms up
    const quiet = await measure();
    const changes = new AbortController();
    const changing = changeEachSecond(server.managementUrl, changes.signal);
    const during = await measure();
    changes.abort();
    await changing;
    rows[`${clients.toLocaleString('en')} clients`] = {
      'ready ms': Math.round(server.startMs),
      'MB at rest': Math.round(atRest),
      'MB after the load': Math.round(memory(server.pid)),
      'idle CPU %': rounded(idleRatio * 100),
      'p50, p99 ms': milliseconds(quiet),
      'p50, p99 ms with changes': milliseconds(during),
    };
    await server.stop();
  }
  return [rows];
});

/** Changes one client each second by the admin API, until `signal` aborts. */
async function changeEachSecond(managementUrl: string, signal: AbortSignal): Promise<void> {
  const clientId = `changed-${Date.now()}`;
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const send = async (path: string, method: string, body: object) => {
    const request = { method, headers, body: JSON.stringify(body) };
    const response = await fetch(`${managementUrl}/admin/clients${path}`, request);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };
  await send('', 'POST', { client_id: clientId, name: clientId, client_type: 'web' });
  for (let count = 0; !signal.aborted; count++) {
    await send(`/${clientId}`, 'PATCH', { name: `Change ${count}` });
    await sleep(CHANGE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

function milliseconds({ p50, p99 }: Times): string {
  return `${rounded(p50)}, ${rounded(p99)}`;
}
