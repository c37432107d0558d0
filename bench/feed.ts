/**
 * `npm run bench:feed [-- COUNT]`: measures how long after the response that confirms the end of a token a consumer of
 * the revocation feed gets the entry. Tokens end on one of two processes that have no other load. One consumer follows
 * the feed of each. Takes about a minute.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeJwt } from 'jose';
import { SERVICE, type Server } from './support/server.js';
import { benchmark } from './support/setup.js';
import { CLIENT, ORGANIZATION, ORIGIN, RESOURCE_SERVER } from './support/site.js';

const REVOCATION_COUNT = Number(process.argv[2] ?? 60);
const MAX_PAUSE_MS = 1_000;
const WAIT_SECONDS = 25;
const CATCH_UP_TIMEOUT_MS = 30_000;
const AUTHORIZATION = `Basic ${btoa(`${RESOURCE_SERVER.id}:${RESOURCE_SERVER.secret}`)}`;

await benchmark('npm run bench:feed', '128M', async ({ start }) => {
  const [writer, other] = [await start(SERVICE), await start(SERVICE)];
  const following = new AbortController();
  const consumers = [writer, other].map((server) => {
    const seen = new Map<string, number>();
    void follow(server, seen, following.signal);
    return seen;
  });
  const ended = new Map<string, number>();
  while (ended.size < REVOCATION_COUNT) {
    await sleep(Math.random() * MAX_PAUSE_MS); // independent of the pause between two reads of the state
    ended.set(await endToken(writer), performance.now());
  }
  const until = performance.now() + CATCH_UP_TIMEOUT_MS;
  while (consumers.some((seen) => seen.size < ended.size) && performance.now() < until) await sleep(50);
  following.abort();
  const lags = consumers.map((seen) => [...ended].map(([sid, at]) => (seen.get(sid) ?? Infinity) - at));
  return [{ 'the same process': distribution(lags[0] ?? []), 'the other process': distribution(lags[1] ?? []) }];
});

/** Ends a token, and returns its `sid`. */
async function endToken({ url }: Server): Promise<string> {
  const path = `${url}/v2/customer/token`;
  const headers = { 'Content-Type': 'application/json', Origin: ORIGIN };
  const scope = { client_id: CLIENT, organization_id: ORGANIZATION };
  const body = JSON.stringify({ grant_type: 'cookie', response_type: 'token', ...scope });
  const response = await fetch(path, { method: 'POST', headers, body });
  const { access_token } = (await response.json()) as { access_token: string };
  const { ok, status } = await fetch(path, { method: 'DELETE', headers: { Authorization: `Bearer ${access_token}` } });
  if (!ok) throw new Error(`the token was not ended: ${status}`);
  return String(decodeJwt(access_token.slice(access_token.indexOf(':') + 1)).sid);
}

/** Notes when each entry arrives, until `signal` aborts. */
async function follow({ managementUrl }: Server, seen: Map<string, number>, signal: AbortSignal): Promise<void> {
  for (let cursor = ''; !signal.aborted; ) {
    const url = `${managementUrl}/oauth2/revocations?wait=${WAIT_SECONDS}&after=${cursor}`;
    const response = await fetch(url, { headers: { Authorization: AUTHORIZATION }, signal }).catch(() => undefined);
    if (!response) continue;
    const page = (await response.json()) as { cursor: string; revocations: { value: string }[] };
    for (const { value } of page.revocations) if (!seen.has(value)) seen.set(value, performance.now());
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
