import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FeedEntries } from '../../../src/feed/feed-entries.js';
import { FeedPublisher } from '../../../src/feed/feed-publisher.js';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidGrant, expectLimited } from '../../support/expect-error.js';
import { manage, metricOf } from '../../support/management-api.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { FEED_SERVERS, FeedConsumer, type FeedEntry, POLL_PAUSE_MS } from '../../support/revocation-feed.js';
import { StatementGate } from '../../support/statement-gate.js';
import { ACME_BACKEND, ACME_SITE, BACKEND_SECRET } from '../../support/test-registry.js';
import { type TestService } from '../../support/test-service.js';
import { collectTimers, shortenPauses } from '../../support/timers.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, type UsedService } from '../../support/use-service.js';

beforeEach(() => shortenPauses(POLL_PAUSE_MS));

/** No further entries by callers of customers' routes are possible from here on (protocol §2.14). */
const MAX_ENTRIES = 1_000_000;
const HOUR_SECONDS = 3_600;
const REVOKE = '/v2/customer/revoke';

/** The private methods that publish, and that count a part of the entries. */
interface Publishing {
  publish(): Promise<boolean>;
}
interface Counting {
  countStep(): Promise<void>;
}

/** A day, the longest lifetime of a token, and 120 s for requests under way and clocks that differ (protocol §3.14). */
const ENTRY_SECONDS = 86_520;

/** The longest lifetime of an access token. */
const LONGEST = { CUSTOMER_TOKEN_TTL: '86400' };

const registry = { ...refreshingRegistry(), resource_servers: FEED_SERVERS };

/** The first process of the test, which owns the database. */
let first: UsedService | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  first = undefined;
});

async function start(environment: Record<string, string> = {}): Promise<UsedService> {
  const database = first && { database: first.database };
  const service = await serviceOfTest({ ...database, registry, environment: { TRUST_PROXY: '1', ...environment } });
  first ??= service;
  return service;
}

const from = (ip: string) => ({ 'x-forwarded-for': ip });
const query = ({ application }: TestService, sql: string, parameters: unknown[] = []) =>
  application.get(DataSource).query(sql, parameters);
const publisherIn = ({ application }: TestService) => application.get(FeedPublisher, { strict: false });
const entriesIn = ({ application }: TestService) => application.get(FeedEntries, { strict: false });
const endToken = (service: TestService, token: string, ip = '203.0.113.7') =>
  service.send('DELETE', TOKEN, { ...bearer(token), ...from(ip) });
const sidOf = (token: string) => claimsOf(token).sid as string;
const endNew = async (service: TestService) => endToken(service, (await newCustomer(service)).access_token);

const entriesOf = (service: TestService) => metricOf(service, 'cas_revocation_feed_entries');

/** Waits until a process counts this number of entries. */
const untilEntries = (service: TestService, entries: number) => expect.poll(() => entriesOf(service)).toBe(entries);

/** Waits until a process has finished the count of its start. */
const untilCounted = (service: TestService) =>
  expect.poll(() => Reflect.get(entriesIn(service), 'lastCount').knownAt).toBeGreaterThan(0);

/** Waits until no entry waits for its publication. */
const untilPublished = (service: TestService) =>
  expect.poll(() => query(service, 'SELECT value FROM ended WHERE published_until IS NULL')).toEqual([]);

/** Moves the clock so that the next count is due, after the process has seen the last one and all publications. */
async function beginCount(service: TestService, seconds = 120): Promise<void> {
  const hasSeenLast = async () => {
    const [{ entries, entries_count }] = await query(service, 'SELECT entries, entries_count FROM revocation_feed');
    const { counting, published, lastCount } = entriesIn(service) as unknown as {
      counting: unknown;
      published: number;
      lastCount: { number: number };
    };
    return counting === undefined && published === entries && lastCount.number === entries_count;
  };
  await expect.poll(hasSeenLast).toBe(true);
  service.clock.advance({ seconds });
}

/** Inserts revocations: `seconds` from now until they leave the feed, or `null` if they wait for their publication. */
async function insertRevocations(service: TestService, count: number, seconds: number | null): Promise<void> {
  const at = (offset: number) =>
    new Date(service.clock.now() + offset * 1000).toISOString().replace('T', ' ').slice(0, -1);
  const batch = 1_000;
  for (let first = 0; first < count; first += batch) {
    const values = Array.from({ length: Math.min(batch, count - first) }, (_, index) => [
      `inserted ${seconds} ${first + index}`,
      seconds === null ? null : at(seconds + (first + index) / 1000),
    ]);
    const rows = values.map(
      () => `('token', ?, 'revoked', '9999-12-31 00:00:00.000', '${at(90_000)}', 'customer-api', ?)`,
    );
    await query(
      service,
      `INSERT INTO ended (kind, value, reason, issued_before, expires_at, audience, published_until)
        VALUES ${rows.join()}`,
      values.flat(),
    );
  }
}

/** As if the feed had this number of entries. The next count would correct it. */
const setEntries = (service: TestService, entries: number) =>
  query(service, 'UPDATE revocation_feed SET entries = ?', [entries]);

describe('while 1,000,000 entries are in force', () => {
  it.each(['off', ''])('no customer and no client causes a further one, with RATE_LIMIT=%j', async (RATE_LIMIT) => {
    const service = await start({ RATE_LIMIT });
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const first = (await redeem(service, code, {}, from('203.0.113.7'))).body;
    const kept = await stayOf(service, undefined, {}, from('203.0.113.7'));
    const second = (await refreshCustomer(service, kept.refresh_token, {}, from('203.0.113.7'))).body;
    const next = (await refreshCustomer(service, second.refresh_token, {}, from('203.0.113.7'))).body;
    const agent = await issueAgentToken(service);
    const byAgent = (await service.post(TOKEN, agentTokenBody({ client_id: ACME_BACKEND }), bearer(agent))).body;
    await untilCounted(service);
    await setEntries(service, MAX_ENTRIES);
    await untilEntries(service, MAX_ENTRIES);
    for (const ip of ['203.0.113.7', '198.51.100.1', '2001:db8::1']) {
      expectLimited(await endToken(service, access_token, ip));
      expectLimited(await endSessions(service, access_token, {}, from(ip)));
      expectLimited(await service.post(REVOKE, { token: access_token, client_id: ACME_SITE }, from(ip)));
      const secret = { client_id: ACME_BACKEND, client_secret: BACKEND_SECRET };
      expectLimited(await service.post(REVOKE, { token: byAgent.access_token, ...secret }, from(ip)));
      expect((await service.post(REVOKE, { token: access_token, ...secret }, from(ip))).status, 'no entry').toBe(200);
    }
    for (const token of [access_token, byAgent.access_token]) expect(await infoStatus(service, token)).toBe(200);
    expectInvalidGrant(await redeem(service, code, {}, from('198.51.100.1')));
    expectInvalidGrant(await refreshCustomer(service, kept.refresh_token, {}, from('198.51.100.1')));
    expectInvalidGrant(await refreshCustomer(service, next.refresh_token, {}, from('203.0.113.7')));
    for (const token of [first.access_token, next.access_token]) expect(await infoStatus(service, token)).toBe(401);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const asClient = { ...basic(ACME_BACKEND, BACKEND_SECRET), ...form };
    const revoked = await manage(service, 'POST', '/oauth2/revoke', asClient, `token=${byAgent.access_token}`);
    expect(revoked.status).toBe(200);
    expect((await endSessions(service, agent, { customer_id: byAgent.entity_id })).status).toBe(200);
    expect((await endSessionsAsOperator(service, ADMIN_TOKEN, byAgent.entity_id)).status).toBe(200);
    const consumer = new FeedConsumer([service]);
    await consumer.find({ kind: 'token', value: claimsOf(byAgent.access_token).jti as string });
    await consumer.find({ kind: 'subject', value: byAgent.entity_id });
    const ofOthers = [access_token, first.access_token, next.access_token].map(sidOf);
    const isOfOthers = ({ value }: FeedEntry) => ofOthers.includes(value);
    expect(consumer.entries.filter(isOfOthers)).toEqual([]);
  });

  it('a process that starts knows it at its first request', async () => {
    const one = await start();
    await untilCounted(one);
    publisherIn(one).onModuleDestroy(); // its count would correct the number
    await setEntries(one, MAX_ENTRIES);
    vi.restoreAllMocks();
    collectTimers(POLL_PAUSE_MS); // its own count, which follows a poll, would correct the number
    const two = await start();
    expectLimited(await endNew(two));
  });

  it('endings are possible again after entries have expired', async () => {
    const service = await start();
    await untilCounted(service);
    await setEntries(service, MAX_ENTRIES);
    await untilEntries(service, MAX_ENTRIES);
    expectLimited(await endNew(service));
    await beginCount(service);
    await untilEntries(service, 0);
    expect((await endNew(service)).status).toBe(200);
  });

  it('with 100,000 further ones that wait for their publication, the number is unknown and counts as reached', async () => {
    const service = await start();
    await untilEntries(service, 0);
    vi.spyOn(publisherIn(service) as unknown as Publishing, 'publish').mockResolvedValue(false);
    await insertRevocations(service, 99_999, null);
    await untilEntries(service, 99_999);
    expect((await endNew(service)).status).toBe(200);
    await untilEntries(service, 100_000);
    expectLimited(await endNew(service));
  });
});

describe('the number of entries in force', () => {
  it('rises in each process with each publication, and falls when entries have expired', async () => {
    const one = await start();
    const two = await start();
    for (const service of [one, two]) await untilCounted(service); // a count under way may count an entry twice
    for (const service of [one, two, one]) expect((await endNew(service)).status).toBe(200);
    for (const service of [one, two]) await untilEntries(service, 3);
    await untilPublished(one); // a publication after the clock has moved would be in force
    for (const service of [one, two]) await beginCount(service, 25 * HOUR_SECONDS);
    for (const service of [one, two]) await untilEntries(service, 0);
  });

  it('is counted in steps of 10,000 rows, and no publication meanwhile is lost', async () => {
    const service = await start();
    await untilCounted(service);
    await insertRevocations(service, 25_000, HOUR_SECONDS);
    await insertRevocations(service, 500, -10);
    vi.restoreAllMocks(); // the pauses between two steps are those of production again
    const step = vi.spyOn(entriesIn(service) as unknown as Counting, 'countStep');
    await beginCount(service);
    await expect.poll(() => step, { interval: 1 }).toHaveBeenCalled();
    for (const { status } of [await endNew(service), await endNew(service)]) expect(status).toBe(200);
    await expect.poll(() => step, { interval: 1 }).toHaveBeenCalledTimes(3);
    await expect.poll(() => entriesOf(service)).toBeGreaterThanOrEqual(25_002);
    await beginCount(service);
    await untilEntries(service, 25_002);
    await beginCount(service, HOUR_SECONDS);
    await untilEntries(service, 2);
  });

  it('includes entries that expired less than 120 s ago, because the clock of the process may be ahead', async () => {
    const service = await start();
    await untilCounted(service);
    await insertRevocations(service, 3, 60);
    await beginCount(service);
    await untilEntries(service, 3);
    await beginCount(service);
    await untilEntries(service, 0);
  });

  it('is counted again when a restore of the database interrupts a count', async () => {
    const service = await start();
    expect((await endNew(service)).status).toBe(200);
    await untilEntries(service, 1);
    await untilCounted(service);
    await insertRevocations(service, 25_000, HOUR_SECONDS);
    vi.restoreAllMocks(); // the pauses between two steps are those of production again
    const step = vi.spyOn(entriesIn(service) as unknown as Counting, 'countStep');
    await beginCount(service);
    await expect.poll(() => step, { interval: 1 }).toHaveBeenCalled();
    await query(service, 'UPDATE revocation_feed SET position = position - 1000, entries = 7');
    await query(service, "DELETE FROM ended WHERE value LIKE 'inserted %'");
    await expect.poll(() => query(service, 'SELECT entries FROM revocation_feed')).toEqual([{ entries: 1 }]);
  });

  it('is logged once if it cannot be counted, and revocations are published meanwhile', async () => {
    const service = await start();
    await untilCounted(service);
    const [warn, log] = [vi.spyOn(Logger.prototype, 'warn'), vi.spyOn(Logger.prototype, 'log')];
    const counted = vi.spyOn(entriesIn(service), 'countOn').mockRejectedValue(new Error('SLOW'));
    const { access_token } = await newCustomer(service);
    expect((await endToken(service, access_token)).status).toBe(200);
    await new FeedConsumer([service]).find({ value: sidOf(access_token) });
    await expect.poll(() => counted.mock.calls.length).toBeGreaterThan(2);
    counted.mockRestore();
    await expect.poll(() => log.mock.calls).toEqual([['the entries of the revocation feed can be counted again']]);
    expect(warn.mock.calls).toEqual([['the entries of the revocation feed cannot be counted: SLOW']]);
  });

  it('counts a revocation that waits again after a change at most twice, until the next count', async () => {
    const service = await start();
    const { entity_id } = await newCustomer(service);
    const positions = new Set<unknown>();
    for (let round = 1; round <= 3; round++) {
      await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
      await untilPublished(service);
      const [{ position }] = await query(service, 'SELECT position FROM ended WHERE value = ?', [entity_id]);
      expect(positions.add(position).size).toBe(round);
    }
    expect(await entriesOf(service)).toBeGreaterThanOrEqual(1);
    await beginCount(service);
    await untilEntries(service, 1);
  });
});

/** Ends a token of a new customer. Returns the seconds for which its entry is in the feed. */
async function entrySeconds(at: TestService): Promise<number> {
  const { access_token } = await newCustomer(at);
  const before = at.clock.now();
  await endToken(at, access_token);
  const { expires_at } = await new FeedConsumer([at]).find({ value: sidOf(access_token) });
  return (Date.parse(expires_at) - before) / 1000;
}

/** Longer than any access token lives (protocol §3.14). The time from the revocation to its publication is added. */
function expectLongestSeconds(actual: number): void {
  expect(actual).toBeGreaterThanOrEqual(ENTRY_SECONDS);
  expect(actual).toBeLessThan(ENTRY_SECONDS + 60);
}

/** Whether the feed has an entry now. */
async function isInFeed(at: TestService, entry: Partial<FeedEntry>): Promise<boolean> {
  const consumer = new FeedConsumer([at]);
  await consumer.catchUp();
  return consumer.has(entry);
}

describe('an entry of the feed for customers’ tokens', () => {
  it('lasts longer than the longest lifetime of an access token, also in a process with another lifetime', async () => {
    expectLongestSeconds(await entrySeconds(await start()));
    expectLongestSeconds(await entrySeconds(await start({ CUSTOMER_TOKEN_TTL: '60' })));
  });

  it('leaves the feed when it has expired, and is then purged', async () => {
    const service = await start();
    const { access_token } = await newCustomer(service);
    const value = sidOf(access_token);
    await endToken(service, access_token);
    await new FeedConsumer([service]).find({ value });
    const rows = () => query(service, 'SELECT 1 FROM ended WHERE value = ?', [value]);
    service.clock.advance({ seconds: ENTRY_SECONDS - 60 });
    await purge(service);
    expect(await isInFeed(service, { value })).toBe(true);
    expect(await rows()).toHaveLength(1);
    service.clock.advance({ seconds: 120 });
    expect(await isInFeed(service, { value })).toBe(false);
    await purge(service);
    expect(await rows()).toEqual([]);
  });

  it('outlives a token with the longest lifetime, which stays ended', async () => {
    const service = await start(LONGEST);
    const { access_token } = (await service.post(TOKEN, cookieBody())).body;
    await endToken(service, access_token);
    const value = sidOf(access_token);
    await new FeedConsumer([service]).find({ value });
    service.clock.advance({ seconds: 86_399 });
    expect(await isInFeed(service, { value })).toBe(true);
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('outlives the token of a request that is under way during the revocation', async () => {
    const service = await start(LONGEST);
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id } = known.body;
    const requestId = randomUUID();
    const gate = new StatementGate(service, requestId, 1);
    const headers = { cookie: cookieHeader(known), 'x-request-id': requestId };
    const underWay = service.post(TOKEN, cookieBody(), headers);
    await gate.reached;
    expect((await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id)).status).toBe(200);
    const { expires_at } = await new FeedConsumer([service]).find({ kind: 'subject', value: entity_id });
    gate.close();
    const { access_token } = (await underWay).body;
    expect(await infoStatus(service, access_token), 'it has read the earlier generation').toBe(401);
    expect(Date.parse(expires_at) / 1000).toBeGreaterThan(claimsOf(access_token).exp as number);
  });
});
