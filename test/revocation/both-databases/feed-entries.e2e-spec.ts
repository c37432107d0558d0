import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { FeedEntries } from '../../../src/access-token/feed/feed-entries.js';
import { RevocationPublisher } from '../../../src/access-token/feed/revocation-publisher.js';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { FEED_SERVERS, FeedConsumer, type FeedEntry } from '../../support/revocation-feed.js';
import { ACME_BACKEND, ACME_SITE, BACKEND_SECRET } from '../../support/test-registry.js';
import { request, startTestService, type TestResponse, type TestService } from '../../support/test-service.js';
import { ageRotation, infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-the-feed-entries-test';
/** No further entries by callers of customers' routes are possible from here on (protocol §2.14). */
const MAX_ENTRIES = 2_500_000;
const HOUR_SECONDS = 3_600;
const REVOKE = '/v2/customer/revoke';

/** The private methods that publish, and that count a part of the entries. */
interface Publishing {
  publish(): Promise<boolean>;
}
interface Counting {
  countStep(): Promise<void>;
}

let database: TestDatabase;
const services: TestService[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.stop()));
  await database.remove();
});

async function start(environment: Record<string, string> = {}): Promise<TestService> {
  const registry = { ...refreshingRegistry(), resource_servers: FEED_SERVERS };
  const given = { ADMIN_TOKEN, TRUST_PROXY: '1', ...environment };
  const service = await startTestService({ database, registry, environment: given });
  services.push(service);
  return service;
}

const from = (ip: string) => ({ 'x-forwarded-for': ip });
const query = ({ application }: TestService, sql: string, parameters: unknown[] = []) =>
  application.get(DataSource).query(sql, parameters);
const publisherIn = ({ application }: TestService) => application.get(RevocationPublisher, { strict: false });
const entriesIn = ({ application }: TestService) => application.get(FeedEntries, { strict: false });
const endToken = (service: TestService, token: string, ip = '203.0.113.7') =>
  service.send('DELETE', TOKEN, { ...bearer(token), ...from(ip) });
const endNew = async (service: TestService) => endToken(service, (await newCustomer(service)).access_token);

async function entriesOf({ managementUrl }: TestService): Promise<number> {
  const { text } = await request(`${managementUrl}/metrics`, {});
  return Number(/^cas_revocation_feed_entries (\S+)/m.exec(text)?.[1]);
}

/** Waits until a process counts this number of entries. */
const untilEntries = (service: TestService, entries: number) =>
  vi.waitFor(async () => expect(await entriesOf(service)).toBe(entries), { timeout: 60_000, interval: 50 });

/** Waits until a process has finished the count of its start. */
const untilCounted = (service: TestService) =>
  vi.waitFor(() => expect(Reflect.get(entriesIn(service), 'lastCount').knownAt).toBeGreaterThan(0), {
    timeout: 60_000,
  });

/** Moves the clock so that the next count is due, after the process has seen the last one. */
async function beginCount(service: TestService, seconds = 120): Promise<void> {
  await vi.waitFor(
    async () => {
      const [{ entries_count }] = await query(service, 'SELECT entries_count FROM revocation_feed');
      expect(Reflect.get(entriesIn(service), 'counting')).toBe(undefined);
      expect(Reflect.get(entriesIn(service), 'lastCount').number).toBe(entries_count);
    },
    { timeout: 60_000 },
  );
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
    const rows = values.map(() => `('jti', ?, '9999-12-31 00:00:00.000', '${at(90_000)}', 'customer-api', ?)`);
    await query(
      service,
      `INSERT INTO revocation (kind, value, issued_before, expires_at, audience, published_until) VALUES ${rows.join()}`,
      values.flat(),
    );
  }
}

/** As if the feed had this number of entries. The next count would correct it. */
const setEntries = (service: TestService, entries: number) =>
  query(service, 'UPDATE revocation_feed SET entries = ?', [entries]);

const expectFull = (response: TestResponse) => {
  expectError(response, { status: 429, error: 'temporarily_unavailable', hint: undefined });
  const wait = Number(response.headers.get('retry-after'));
  expect(wait > 0 && wait <= 60).toBe(true);
};

describe('while 2,500,000 entries are in force', () => {
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
      expectFull(await endToken(service, access_token, ip));
      expectFull(await endSessions(service, access_token, {}, from(ip)));
      expectFull(await service.post(REVOKE, { token: access_token, client_id: ACME_SITE }, from(ip)));
      const secret = { client_id: ACME_BACKEND, client_secret: BACKEND_SECRET };
      expectFull(await service.post(REVOKE, { token: byAgent.access_token, ...secret }, from(ip)));
      expect((await service.post(REVOKE, { token: access_token, ...secret }, from(ip))).status, 'no entry').toBe(200);
    }
    for (const token of [access_token, byAgent.access_token]) expect(await infoStatus(service, token)).toBe(200);
    expectInvalidGrant(await redeem(service, code, {}, from('198.51.100.1')));
    await ageRotation(service, kept.refresh_token, 31);
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
    await consumer.find({ kind: 'jti', value: claimsOf(byAgent.access_token).jti as string });
    await consumer.find({ kind: 'subject', value: byAgent.entity_id });
    const ofOthers = [access_token, first.access_token, next.access_token].map(
      (token) => claimsOf(token).jti as string,
    );
    const isOfOthers = ({ value }: FeedEntry) => ofOthers.some((jti) => jti.startsWith(value));
    expect(consumer.entries.filter(isOfOthers)).toEqual([]);
  });

  it('a process that starts knows it at its first request', async () => {
    const one = await start();
    await untilCounted(one);
    publisherIn(one).onModuleDestroy(); // its count would correct the number
    await setEntries(one, MAX_ENTRIES);
    const two = await start();
    expectFull(await endNew(two));
  });

  it('endings are possible again after entries have expired', async () => {
    const service = await start();
    await untilCounted(service);
    await setEntries(service, MAX_ENTRIES);
    await untilEntries(service, MAX_ENTRIES);
    expectFull(await endNew(service));
    await beginCount(service);
    await untilEntries(service, 0);
    expect((await endNew(service)).status).toBe(200);
  });

  it('with 100,000 further ones that wait for their publication, the number is unknown and counts as reached', async () => {
    const service = await start();
    await untilEntries(service, 0);
    const publishing = vi.spyOn(publisherIn(service) as unknown as Publishing, 'publish').mockResolvedValue(false);
    await insertRevocations(service, 99_999, null);
    await untilEntries(service, 99_999);
    expect((await endNew(service)).status).toBe(200);
    await untilEntries(service, 100_000);
    expectFull(await endNew(service));
    publishing.mockRestore();
  });
});

describe('the number of entries in force', () => {
  it('rises in each process with each publication, and falls when entries have expired', async () => {
    const one = await start();
    const two = await start();
    for (const service of [one, two]) await untilCounted(service); // a count under way may count an entry twice
    for (const service of [one, two, one]) expect((await endNew(service)).status).toBe(200);
    for (const service of [one, two]) await untilEntries(service, 3);
    for (const service of [one, two]) await beginCount(service, 9 * HOUR_SECONDS);
    for (const service of [one, two]) await untilEntries(service, 0);
  });

  it('is counted in steps of 10,000 rows, and no publication meanwhile is lost', async () => {
    const service = await start();
    await untilCounted(service);
    await insertRevocations(service, 25_000, HOUR_SECONDS);
    await insertRevocations(service, 500, -10);
    const step = vi.spyOn(entriesIn(service) as unknown as Counting, 'countStep');
    await beginCount(service);
    await vi.waitFor(() => expect(step).toHaveBeenCalled(), { timeout: 60_000, interval: 1 });
    for (const { status } of [await endNew(service), await endNew(service)]) expect(status).toBe(200);
    await vi.waitFor(() => expect(step).toHaveBeenCalledTimes(3), { timeout: 60_000, interval: 1 });
    await vi.waitFor(async () => expect(await entriesOf(service)).toBeGreaterThanOrEqual(25_002), { timeout: 60_000 });
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
    const step = vi.spyOn(entriesIn(service) as unknown as Counting, 'countStep');
    await beginCount(service);
    await vi.waitFor(() => expect(step).toHaveBeenCalled(), { timeout: 60_000, interval: 1 });
    await query(service, 'UPDATE revocation_feed SET position = position - 1000, entries = 7');
    await query(service, "DELETE FROM revocation WHERE value LIKE 'inserted %'");
    await vi.waitFor(
      async () => expect(await query(service, 'SELECT entries FROM revocation_feed')).toEqual([{ entries: 1 }]),
      { timeout: 20_000 },
    );
  });

  it('is logged once if it cannot be counted, and revocations are published meanwhile', async () => {
    const service = await start();
    await untilCounted(service);
    const [warn, log] = [vi.spyOn(Logger.prototype, 'warn'), vi.spyOn(Logger.prototype, 'log')];
    const counted = vi.spyOn(entriesIn(service), 'countOn').mockRejectedValue(new Error('SLOW'));
    const { access_token } = await newCustomer(service);
    expect((await endToken(service, access_token)).status).toBe(200);
    await new FeedConsumer([service]).find({ value: claimsOf(access_token).jti as string });
    await vi.waitFor(() => expect(counted.mock.calls.length).toBeGreaterThan(2), { timeout: 60_000 });
    counted.mockRestore();
    await vi.waitFor(
      () => expect(log.mock.calls).toEqual([['the entries of the revocation feed can be counted again']]),
      { timeout: 60_000 },
    );
    expect(warn.mock.calls).toEqual([['the entries of the revocation feed cannot be counted: SLOW']]);
    vi.restoreAllMocks();
  });

  it('includes revocations that wait for their publication, beyond those of one publication too', async () => {
    const service = await start();
    await untilEntries(service, 0);
    const publishing = vi.spyOn(publisherIn(service) as unknown as Publishing, 'publish').mockResolvedValue(false);
    await insertRevocations(service, 1_700, null);
    await untilEntries(service, 1_700);
    publishing.mockRestore();
    await new FeedConsumer([service]).find({ value: 'inserted null 1699' });
    await untilEntries(service, 1_700);
  });

  it('counts a revocation that waits again after a change at most twice, until the next count', async () => {
    const service = await start();
    const { entity_id } = await newCustomer(service);
    for (let generation = 1; generation <= 3; generation++) {
      await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
      await new FeedConsumer([service]).find({ kind: 'subject', value: entity_id, generation });
    }
    expect(await entriesOf(service)).toBeGreaterThanOrEqual(1);
    await beginCount(service);
    await untilEntries(service, 1);
  });
});
