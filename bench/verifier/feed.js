// @ts-check
import { createTokenVerifier } from 'token-verifier';
import { cpuTime, memory, SERVICE } from '../server.js';
import { RESOURCE_SERVER } from '../site.js';

const REVOCATION_COUNT = 2_500_000;
/** As the service publishes revocations that wait together. */
const ROWS_PER_POSITION = 500;
const OLDEST_MS = 3_600_000;
const MEMORY_INTERVAL_MS = 100;

/**
 * Measures how long a verifier takes to read the full feed of a service that has nothing else to do.
 *
 * @param {import('../setup.js').Setup} setup @returns {Promise<import('../figures.js').Table>}
 */
export async function measureFeed({ connection, pid, start }) {
  await seedRevocations(connection);
  const service = await start(SERVICE);
  const { managementPort } = service;
  const counters = () => ({ service: cpuTime(service.pid), database: cpuTime(pid()), verifier: ownCpuTime() });
  await longestPauseMs(managementPort); // the metric then begins again
  const [cpu, idleMegabytes, begun] = [counters(), memory(service.pid), performance.now()];
  let megabytes = idleMegabytes;
  const sampling = setInterval(() => {
    megabytes = Math.max(megabytes, memory(service.pid));
  }, MEMORY_INTERVAL_MS);
  const verifier = createTokenVerifier({
    issuer: 'http://localhost',
    jwksUrl: `http://127.0.0.1:${service.port}/.well-known/jwks.json`,
    audience: 'customer-api',
    revocations: {
      url: `http://127.0.0.1:${managementPort}/oauth2/revocations`,
      ...RESOURCE_SERVER,
      maxAgeSeconds: 60,
      onStale: 'reject',
    },
  });
  await verifier.ready();
  const seconds = (performance.now() - begun) / 1000;
  clearInterval(sampling);
  const used = counters();
  const { entries, revocations } = verifier.state;
  verifier.close();
  if (entries !== REVOCATION_COUNT || revocations !== 'current') throw new Error(`${entries} entries, ${revocations}`);
  const perEntry = (/** @type {keyof typeof cpu} */ name) =>
    Number((((used[name] - cpu[name]) / entries) * 1e6).toFixed(1));
  return {
    [`${entries.toLocaleString('en-US')} entries`]: {
      seconds: Number(seconds.toFixed(1)),
      'entries/s': Math.round(entries / seconds),
      'service CPU µs per entry': perEntry('service'),
      'database CPU µs per entry': perEntry('database'),
      'verifier CPU µs per entry': perEntry('verifier'),
      'service, MB idle': Math.round(idleMegabytes),
      'service, MB highest': Math.round(megabytes),
      'longest pause of the service, ms': Math.round(await longestPauseMs(managementPort)),
    },
  };
}

/**
 * Adds ended sessions with random ids that were published within the last hour. MariaDB inserts rows faster in the order of
 * their keys.
 *
 * @param {import('mysql2/promise').Connection} database
 */
async function seedRevocations(database) {
  const first = Date.now() - OLDEST_MS;
  const end = 'NOW(3) + INTERVAL 8 HOUR + INTERVAL seq MICROSECOND';
  await database.query(`
    INSERT INTO ended (kind, value, number, reason, issued_before, expires_at, published_until, audience, position)
    SELECT 'session', CONCAT_WS('-', LEFT(id, 8), SUBSTR(id, 9, 4), SUBSTR(id, 13, 4), SUBSTR(id, 17, 4), RIGHT(id, 12)),
      1, 'revoked', '9999-12-31', ${end}, ${end}, 'customer-api', ${first} + FLOOR(seq / ${ROWS_PER_POSITION})
    FROM (SELECT seq, MD5(seq) AS id FROM seq_0_to_${REVOCATION_COUNT - 1}) ids ORDER BY id`);
  await database.query(`UPDATE revocation_feed SET position = ${first + REVOCATION_COUNT / ROWS_PER_POSITION}`);
}

/** The longest pause of the event loop since the last call. @param {number} managementPort */
async function longestPauseMs(managementPort) {
  const text = await (await fetch(`http://127.0.0.1:${managementPort}/metrics`)).text();
  return Number(/^nodejs_eventloop_lag_max_seconds(?:\{.*\})? (\S+)$/m.exec(text)?.[1]) * 1000;
}

function ownCpuTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
