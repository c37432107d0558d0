// @ts-check
/**
 * `npm run bench:feed [-- COUNT]`: measures how long after the response that confirms the end of a token a consumer of
 * the revocation feed gets the entry. Two processes run on a private durable MariaDB without other load. Tokens end on
 * the first process. One consumer follows the feed of each process. Takes about a minute.
 */
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeJwt } from 'jose';
import { SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { CLIENT, ORGANIZATION, ORIGIN, RESOURCE_SERVER } from './site.js';

const REVOCATION_COUNT = Number(process.argv[2] ?? 60);
const MAX_PAUSE_MS = 1_000;
const WAIT_SECONDS = 25;
const CATCH_UP_TIMEOUT_MS = 30_000;
const AUTHORIZATION = `Basic ${btoa(`${RESOURCE_SERVER.id}:${RESOURCE_SERVER.secret}`)}`;

/** @param {import('./server.js').Server} server Ends a token, and returns its `sid`. */
async function endToken({ port }) {
  const url = `http://127.0.0.1:${port}/v2/customer/token`;
  const headers = { 'Content-Type': 'application/json', Origin: ORIGIN };
  const scope = { client_id: CLIENT, organization_id: ORGANIZATION };
  const body = JSON.stringify({ grant_type: 'cookie', response_type: 'token', ...scope });
  const response = await fetch(url, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`the token was not issued: ${await response.text()}`);
  const { access_token } = /** @type {{ access_token: string }} */ (await response.json());
  const ended = await fetch(url, { method: 'DELETE', headers: { Authorization: `Bearer ${access_token}` } });
  if (!ended.ok) throw new Error(`the token was not ended: ${ended.status}`);
  return `${decodeJwt(access_token.slice(access_token.indexOf(':') + 1)).sid}`;
}

/** @param {import('./server.js').Server} server @param {Map<string, number>} seen @param {AbortSignal} signal */
async function follow({ managementPort }, seen, signal) {
  for (let cursor = ''; !signal.aborted; ) {
    const url = `http://127.0.0.1:${managementPort}/oauth2/revocations?wait=${WAIT_SECONDS}&after=${cursor}`;
    const response = await fetch(url, { headers: { Authorization: AUTHORIZATION }, signal });
    if (!response.ok) throw new Error(`the feed has status ${response.status}`);
    const page = /** @type {{ cursor: string, revocations: { value: string }[] }} */ (await response.json());
    cursor = page.cursor;
    for (const { value } of page.revocations) if (!seen.has(value)) seen.set(value, performance.now());
  }
}

await withSetup('128M', async ({ start }) => {
  const servers = [await start(SERVICE), await start(SERVICE)];
  const following = new AbortController();
  const seen = servers.map(() => /** @type {Map<string, number>} */ (new Map()));
  const follows = servers.map((server, index) =>
    follow(server, seen[index] ?? new Map(), following.signal).catch((error) => {
      if (!following.signal.aborted) console.error(error);
    }),
  );
  /** @type {Map<string, number>} */
  const ended = new Map();
  const [writer] = servers;
  if (!writer) return;
  for (let count = 0; count < REVOCATION_COUNT; count++) {
    await sleep(Math.random() * MAX_PAUSE_MS); // independent of the pause between two reads of the state
    ended.set(await endToken(writer), performance.now());
  }
  const until = performance.now() + CATCH_UP_TIMEOUT_MS;
  while (seen.some((each) => each.size < ended.size) && performance.now() < until) await sleep(50);
  following.abort();
  await Promise.all(follows);
  const figures = ['the same process', 'the other process'].map((name, index) => [
    name,
    distribution([...ended].map(([sid, at]) => (seen[index]?.get(sid) ?? Number.POSITIVE_INFINITY) - at)),
  ]);
  console.table(Object.fromEntries(figures));
  console.log(
    `${ended.size} revocations; load average ${loadavg()
      .map((each) => each.toFixed(1))
      .join(', ')}`,
  );
});

/** @param {number[]} lags in milliseconds */
function distribution(lags) {
  const sorted = lags.toSorted((one, other) => one - other);
  const at = (/** @type {number} */ part) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? Number.NaN);
  const missed = sorted.filter((lag) => !Number.isFinite(lag)).length;
  return { 'p50 ms': at(0.5), 'p90 ms': at(0.9), 'p99 ms': at(0.99), 'max ms': at(1), missed };
}
