/**
 * `npm run bench:feed [-- COUNT]`: measures how long after the response that confirms a change a consumer learns of it:
 * the end of a token by the revocation feed, and the end of all sessions of a customer by the events. The changes are
 * made on one of two processes that have no other load. One consumer follows each feed of each process. Takes two
 * minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeJwt } from 'jose';
import type { Table } from './support/figures.js';
import { SERVICE, type Server } from './support/server.js';
import { benchmark } from './support/setup.js';
import { CLIENT, ORGANIZATION, ORIGIN, RESOURCE_SERVER } from './support/site.js';

const CHANGE_COUNT = Number(process.argv[2] ?? 60);
const MAX_PAUSE_MS = 1_000;
const WAIT_SECONDS = 25;
const CATCH_UP_TIMEOUT_MS = 30_000;
const AUTHORIZATION = `Basic ${btoa(`${RESOURCE_SERVER.id}:${RESOURCE_SERVER.secret}`)}`;

/** What a feed calls its entries, and a change of a new customer that it reports. */
interface Feed {
  path: string;
  keyOf: (entry: Record<string, unknown>) => unknown;
  change: (server: Server) => Promise<string>;
}

const FEEDS: Record<string, Feed> = {
  revocations: { path: 'revocations', keyOf: ({ value }) => value, change: endToken },
  events: { path: 'events', keyOf: ({ entity_id }) => entity_id, change: endSessions },
};

await benchmark('npm run bench:feed', '128M', async ({ start }) => {
  const [writer, other] = [await start(SERVICE), await start(SERVICE)];
  const results: Table = {};
  for (const [name, feed] of Object.entries(FEEDS)) {
    const [same, others] = await lagsOf(feed, writer, other);
    results[`${name} of the same process`] = distribution(same);
    results[`${name} of the other process`] = distribution(others);
  }
  return [results];
});

/** The milliseconds from each response to the entry at a consumer of each process. */
async function lagsOf(feed: Feed, writer: Server, other: Server): Promise<[number[], number[]]> {
  const following = new AbortController();
  const consumers = [writer, other].map((server) => {
    const seen = new Map<unknown, number>();
    void follow(feed, server, seen, following.signal);
    return seen;
  });
  const changed = new Map<string, number>();
  while (changed.size < CHANGE_COUNT) {
    await sleep(Math.random() * MAX_PAUSE_MS); // independent of the pause between two reads of the state
    changed.set(await feed.change(writer), performance.now());
  }
  const until = performance.now() + CATCH_UP_TIMEOUT_MS;
  const isMissing = (seen: Map<unknown, number>) => [...changed.keys()].some((key) => !seen.has(key));
  while (consumers.some(isMissing) && performance.now() < until) await sleep(50);
  following.abort();
  const lagsAt = (seen = new Map<unknown, number>()) =>
    [...changed].map(([key, at]) => (seen.get(key) ?? Infinity) - at);
  return [lagsAt(consumers[0]), lagsAt(consumers[1])];
}

/** Ends a token, and returns its `sid`. */
async function endToken({ url }: Server): Promise<string> {
  const { access_token } = await newCustomer(url);
  await sendAs(access_token, `${url}/v2/customer/token`, 'DELETE');
  return String(decodeJwt(access_token.slice(access_token.indexOf(':') + 1)).sid);
}

/** Ends all sessions of a customer, and returns its id. */
async function endSessions({ url }: Server): Promise<string> {
  const { access_token, entity_id } = await newCustomer(url);
  await sendAs(access_token, `${url}/v2/customer/end_sessions`, 'POST');
  return entity_id;
}

async function newCustomer(url: string): Promise<{ access_token: string; entity_id: string }> {
  const headers = { 'Content-Type': 'application/json', Origin: ORIGIN };
  const scope = { client_id: CLIENT, organization_id: ORGANIZATION };
  const body = JSON.stringify({ grant_type: 'cookie', response_type: 'token', ...scope });
  const response = await fetch(`${url}/v2/customer/token`, { method: 'POST', headers, body });
  return (await response.json()) as { access_token: string; entity_id: string };
}

async function sendAs(token: string, url: string, method: string): Promise<void> {
  const { ok, status } = await fetch(url, { method, headers: { Authorization: `Bearer ${token}` } });
  if (!ok) throw new Error(`${method} ${url}: ${status}`);
}

/** Notes when each entry arrives, until `signal` aborts. */
async function follow(
  { path, keyOf }: Feed,
  { managementUrl }: Server,
  seen: Map<unknown, number>,
  signal: AbortSignal,
): Promise<void> {
  for (let cursor = ''; !signal.aborted; ) {
    const url = `${managementUrl}/oauth2/${path}?wait=${WAIT_SECONDS}&after=${cursor}`;
    const response = await fetch(url, { headers: { Authorization: AUTHORIZATION }, signal }).catch(() => undefined);
    if (!response) continue;
    const page = (await response.json()) as { cursor: string } & Record<string, Record<string, unknown>[]>;
    for (const entry of page[path] ?? []) if (!seen.has(keyOf(entry))) seen.set(keyOf(entry), performance.now());
    cursor = page.cursor;
  }
}

/** @param lags in milliseconds */
function distribution(lags: number[]) {
  const sorted = lags.toSorted((one, other) => one - other);
  const at = (part: number) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? Number.NaN);
  const missed = sorted.filter((lag) => !Number.isFinite(lag)).length;
  return { 'p50 ms': at(0.5), 'p90 ms': at(0.9), 'p99 ms': at(0.99), 'max ms': at(1), missed };
}
