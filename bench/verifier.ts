/**
 * `npm run bench:verifier`: measures the package token-verifier: how long a verifier takes to read the feed of a
 * service that has nothing else to do, then the processor time of `verify` and of `jwtVerify` of jose, and the memory
 * of a full list. VERIFIER_ENTRIES (2500000) is the length of the feed. Takes about 4 minutes.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { createTokenVerifier, type TokenVerifier } from '@customer-authorization/token-verifier';
import { importJWK, jwtVerify } from 'jose';
import type { Connection } from 'mysql2/promise';
import type { Table } from './support/figures.js';
import { measureCalls, rounded } from './support/measure.js';
import { cpuTime, memory, SERVICE, type Server } from './support/server.js';
import { benchmark, type Setup } from './support/setup.js';
import { RESOURCE_SERVER, tokenMaker } from './support/site.js';

const ENTRY_COUNT = Number(process.env.VERIFIER_ENTRIES ?? 2_500_000);
/** Of the list, whose default of `maxEntries` is twice the feed. */
const LIST_COUNT = 2 * ENTRY_COUNT;
const LIST_PAGE_COUNT = 500;
const MEMORY_OF_LIST = 'packages/token-verifier/test/support/memory-of-list.ts';
const TOKEN_COUNT = 2_000;
/** As the service publishes revocations that wait together. */
const ROWS_PER_POSITION = 500;
const OLDEST_MS = 3_600_000;
const MEMORY_INTERVAL_MS = 100;

await benchmark('npm run bench:verifier', '1G', async (setup) => {
  await seedRevocations(setup.connection);
  const service = await setup.start(SERVICE);
  const verifier = createTokenVerifier({
    issuer: 'http://localhost',
    jwksUrl: `${service.url}/.well-known/jwks.json`,
    audience: 'customer-api',
    revocations: {
      url: `${service.managementUrl}/oauth2/revocations`,
      ...RESOURCE_SERVER,
      maxAgeSeconds: 60,
      onStale: 'reject',
    },
  });
  const reading = await measureReading(verifier, service, setup);
  const calls = await measureVerify(verifier, setup.environment.SIGNING_KEYS_FILE);
  verifier.close();
  return [reading, calls, await measureList()];
});

async function measureReading(verifier: TokenVerifier, service: Server, { database }: Setup): Promise<Table> {
  const cpuTimes = () => ({
    service: cpuTime(service.pid),
    database: cpuTime(database.pid()),
    verifier: cpuTime(process.pid),
  });
  await longestPauseMs(service); // the metric then begins again
  const [before, idleMegabytes, begun] = [cpuTimes(), memory(service.pid), performance.now()];
  let megabytes = idleMegabytes;
  const sampling = setInterval(() => {
    megabytes = Math.max(megabytes, memory(service.pid));
  }, MEMORY_INTERVAL_MS);
  await verifier.ready();
  const [seconds, after] = [(performance.now() - begun) / 1000, cpuTimes()];
  clearInterval(sampling);
  const { entries, revocations } = verifier.state;
  if (entries !== ENTRY_COUNT || revocations !== 'current') throw new Error(`${entries} entries, ${revocations}`);
  const perEntry = (name: keyof typeof after) => rounded(((after[name] - before[name]) / entries) * 1e6);
  return {
    [`${entries.toLocaleString('en-US')} entries`]: {
      seconds: rounded(seconds),
      'entries/s': Math.round(entries / seconds),
      'service CPU µs per entry': perEntry('service'),
      'database CPU µs per entry': perEntry('database'),
      'verifier CPU µs per entry': perEntry('verifier'),
      'service, MB idle': Math.round(idleMegabytes),
      'service, MB highest': Math.round(megabytes),
      'longest pause of the service, ms': Math.round(await longestPauseMs(service)),
    },
  };
}

/** With the same token again, and with more tokens than the cache has: each is new when its turn comes again. */
async function measureVerify(verifier: TokenVerifier, keysFile: string): Promise<Table> {
  const [{ d: _, ...jwk }] = JSON.parse(readFileSync(keysFile, 'utf8')).keys;
  const key = await importJWK(jwk, 'ES256');
  const { ofCustomer } = await tokenMaker(keysFile);
  const tokens = await Promise.all(Array.from({ length: TOKEN_COUNT }, (_, index) => ofCustomer(index + 1)));
  const expected = { issuer: 'http://localhost', audience: 'customer-api', typ: 'at+jwt', algorithms: ['ES256'] };
  const verify = (index: number) => verifier.verify(tokens[index] ?? '');
  const verifyByJose = (index: number) => jwtVerify(tokens[index]?.slice('dev:'.length) ?? '', key, expected);
  const ways = {
    'jwtVerify, same token': () => verifyByJose(0),
    'verify, same token': () => verify(0),
    'jwtVerify, new tokens': verifyByJose,
    'verify, new tokens': verify,
  };
  return measureCalls(ways, { rounds: 7, calls: TOKEN_COUNT });
}

/** In a process of its own. */
async function measureList(): Promise<Table> {
  const program = ['--expose-gc', '--import', 'tsx', MEMORY_OF_LIST, String(LIST_COUNT), String(LIST_PAGE_COUNT)];
  const { stdout } = await promisify(execFile)(process.execPath, program);
  const { emptyBytes, size, bytesPerEntry, maxBytesPerEntry } = JSON.parse(stdout);
  return {
    'the empty list': { bytes: emptyBytes },
    [`${size.toLocaleString('en-US')} entries`]: {
      bytes: Math.round(bytesPerEntry * size),
      'bytes per entry': rounded(bytesPerEntry),
    },
    'the most while the list grows, with its garbage': { 'bytes per entry': rounded(maxBytesPerEntry) },
  };
}

/**
 * Adds ended sessions that were published within the last hour, in the order of their keys, which MariaDB adds faster.
 */
async function seedRevocations(database: Connection): Promise<void> {
  const first = Date.now() - OLDEST_MS;
  const end = 'NOW(3) + INTERVAL 8 HOUR + INTERVAL seq MICROSECOND';
  await database.query(`
    INSERT INTO ended (kind, value, number, reason, issued_before, expires_at, published_until, audience, position)
    SELECT 'session', CONCAT_WS('-', LEFT(id, 8), SUBSTR(id, 9, 4), SUBSTR(id, 13, 4), SUBSTR(id, 17, 4), RIGHT(id, 12)),
      1, 'revoked', '9999-12-31', ${end}, ${end}, 'customer-api', ${first} + FLOOR(seq / ${ROWS_PER_POSITION})
    FROM (SELECT seq, MD5(seq) AS id FROM seq_0_to_${ENTRY_COUNT - 1}) ids ORDER BY id`);
  await database.query(`UPDATE revocation_feed SET position = ${first + ENTRY_COUNT / ROWS_PER_POSITION}`);
}

/** The longest pause of the event loop since the last call. */
async function longestPauseMs({ managementUrl }: Server): Promise<number> {
  const text = await (await fetch(`${managementUrl}/metrics`)).text();
  return Number(/^nodejs_eventloop_lag_max_seconds(?:\{.*\})? (\S+)$/m.exec(text)?.[1]) * 1000;
}
