// @ts-check
/**
 * `node bench/purge.js`: what the purge of 300,000 expired codes does to returning customers' cookie grants, on a private
 * durable MariaDB. Rows per second of the purge, and times of the requests before and during it. Takes half a minute.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { buildIfStale } from '../scripts/build.js';
import { startMariadb } from '../scripts/mariadb.js';
import { load } from './load.js';
import { startServer } from './server.js';

const ROWS = 300_000;
const CONNECTIONS = 16;
const BROWSERS = 1_000;
/** Looks at the load before the purge, of a second each; and seconds that the purge may take. */
const BEFORE = 6;
const LONGEST = 35;
const ORGANIZATION = '390e44e6-f1e6-4368-86dd-b74514508c2e';
const BODY = JSON.stringify({
  grant_type: 'cookie',
  client_id: 'site',
  response_type: 'token',
  organization_id: ORGANIZATION,
});
const EXPIRED = `
  INSERT INTO one_time_code (hash, kind, client_id, subject, organization_id, expires_at)
  SELECT SHA2(seq, 256), 'transfer', 'site', UUID(), '${ORGANIZATION}', NOW(3) - INTERVAL seq SECOND FROM seq_1_to_${ROWS}`;

buildIfStale();
const folder = mkdtempSync(join(tmpdir(), 'bench-'));
const server = await startMariadb({ durable: true, bufferPool: '512M' });
/** @type {import('node:child_process').ChildProcess | undefined} */
let service;
try {
  const environment = prepare(await server.createDatabase('bench'));
  const { child, port } = await startServer('dist/main.js', environment, join(folder, 'service.log'));
  service = child;
  const cookies = await newBrowsers(port);
  const database = await mysql.createConnection(server.url('bench'));
  await database.query(EXPIRED);
  const look = () =>
    load({ port, connections: CONNECTIONS, seconds: 1, path: '/v2/customer/token', body: BODY, cookies });
  for (let warm = 0; warm < 2; warm++) await look();
  const before = [];
  while (before.length < BEFORE) before.push(await look());
  const [during, purged] = await purgeUnder(look, environment, database);
  console.table({ 'before the purge': row(before), 'during the purge': row(during) });
  console.log(`purged ${purged.rows} rows, ${Math.round(purged.rows / purged.seconds)} rows/s`);
  await database.end();
} finally {
  service?.kill('SIGKILL');
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** @typedef {Awaited<ReturnType<typeof load>>} Load */

/** @param {string} url */
function prepare(url) {
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
    DATABASE_URL: url,
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

/** @param {number} port @returns {Promise<string[]>} the Cookie header of each */
async function newBrowsers(port) {
  const cookies = [];
  for (let made = 0; made < BROWSERS; made++) {
    const answer = await fetch(`http://127.0.0.1:${port}/v2/customer/token`, { method: 'POST', body: BODY });
    await answer.arrayBuffer();
    cookies.push(
      answer.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; '),
    );
  }
  return cookies;
}

/**
 * Purges, and meanwhile looks at the load; only the looks count that lie wholly within the purge.
 *
 * @param {() => Promise<Load>} look
 * @param {NodeJS.ProcessEnv} env
 * @param {import('mysql2/promise').Connection} database
 * @returns {Promise<[Load[], { rows: number, seconds: number }]>}
 */
async function purgeUnder(look, env, database) {
  const deleted = async () => {
    const [rows] = await database.query("SHOW GLOBAL STATUS LIKE 'Handler_delete'");
    return Number(/** @type {{ Value: string }[]} */ (rows)[0]?.Value);
  };
  const start = await deleted();
  const purge = spawn(process.execPath, ['dist/cli.js', 'purge'], { env, stdio: 'ignore', timeout: LONGEST * 1000 });
  const ended = once(purge, 'exit').then(() => performance.now());
  while (purge.exitCode === null && (await deleted()) === start) await sleep(10);
  const begun = performance.now();
  /** @type {Load[]} */
  const looks = [];
  const runs = () => purge.exitCode === null && purge.signalCode === null;
  while (runs()) {
    const seen = await look();
    if (runs() || looks.length === 0) looks.push(seen);
  }
  const seconds = ((await ended) - begun) / 1000;
  return [looks, { rows: (await deleted()) - start, seconds }];
}

/** @param {Load[]} looks */
function row(looks) {
  const sorted = (/** @type {'requests' | 'p50' | 'p99'} */ what) =>
    looks.map((each) => each[what]).toSorted((a, b) => a - b);
  const median = (/** @type {'requests' | 'p50' | 'p99'} */ what) => sorted(what)[Math.floor(looks.length / 2)] ?? 0;
  return {
    'requests/s': median('requests'),
    'p50 ms': Number(median('p50').toFixed(1)),
    'p99 ms': Number(median('p99').toFixed(1)),
    'p99 ms, worst second': Number(sorted('p99').at(-1)?.toFixed(1)),
    failed: looks.reduce((total, { failed }) => total + failed, 0),
  };
}
