import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { manage } from '../../support/management-api.js';
import { purge } from '../../support/operator-commands.js';
import { FEED_SERVERS, FeedConsumer, type FeedEntry } from '../../support/revocation-feed.js';
import { StatementGate } from '../../support/statement-gate.js';
import { clientOf, statementsOf } from '../../support/statements.js';
import { ACME, testRegistry } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-the-feed-lifetimes-test';
const LONG = 'acme-long';
/** Clients with longer and longer lifetimes: 40,000 s, 50,000 s and 60,000 s. */
const LONGER = ['acme-longer-4', 'acme-longer-5', 'acme-longer-6'];
/** The default of CUSTOMER_TOKEN_TTL. */
const DEFAULT_SECONDS = 28_800;
/** Covers requests under way and clocks that differ (protocol §7.6). */
const MARGIN_SECONDS = 120;

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
  const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };
  const client = { name: 'Acme', client_type: 'web', organization_id: ACME };
  registry.clients.push({ ...client, client_id: LONG, customer_token_ttl: 86_400 });
  for (const id of LONGER)
    registry.clients.push({ ...client, client_id: id, customer_token_ttl: 10_000 * Number(id.at(-1)) });
  const service = await startTestService({ database, registry, environment: { ADMIN_TOKEN, ...environment } });
  services.push(service);
  return service;
}

const endToken = async (at: TestService, token: string) =>
  expect((await at.send('DELETE', TOKEN, bearer(token))).status).toBe(200);
const jtiOf = (token: string) => claimsOf(token).jti as string;

/** Ends a token of a new customer. Returns the seconds for which its entry is in the feed. */
async function entrySeconds(at: TestService): Promise<number> {
  const { access_token } = await newCustomer(at);
  const before = at.clock.now();
  await endToken(at, access_token);
  const { expires_at } = await new FeedConsumer([at]).find({ value: jtiOf(access_token) });
  return (Date.parse(expires_at) - before) / 1000;
}

/** The time from the revocation to its publication is added. */
function expectSeconds(actual: number, longestLife: number): void {
  expect(actual).toBeGreaterThanOrEqual(longestLife + MARGIN_SECONDS);
  expect(actual).toBeLessThan(longestLife + MARGIN_SECONDS + 60);
}

/** Whether the feed has an entry now. */
async function isInFeed(at: TestService, entry: Partial<FeedEntry>): Promise<boolean> {
  const consumer = new FeedConsumer([at]);
  await consumer.catchUp();
  return consumer.has(entry);
}

describe('an entry of the feed for customers’ tokens', () => {
  it('lasts for the longest lifetime of customers’ tokens, and its row for at least a day', async () => {
    const service = await start();
    expectSeconds(await entrySeconds(service), DEFAULT_SECONDS);
    const { access_token } = await newCustomer(service);
    const value = jtiOf(access_token);
    await endToken(service, access_token);
    await new FeedConsumer([service]).find({ value });
    service.clock.advance({ seconds: DEFAULT_SECONDS });
    expect(await isInFeed(service, { value })).toBe(true);
    service.clock.advance({ seconds: MARGIN_SECONDS + 60 });
    expect(await isInFeed(service, { value })).toBe(false);
    service.clock.advance({ seconds: 86_400 - DEFAULT_SECONDS - MARGIN_SECONDS - 120 });
    await purge(service);
    const rows = service.application.get(DataSource).query('SELECT 1 FROM revocation WHERE value = ?', [value]);
    expect(await rows).toHaveLength(1);
  });

  it('lasts longer from the first token with a longer lifetime on, also after the lifetime was lowered', async () => {
    const before = await start();
    expectSeconds(await entrySeconds(before), DEFAULT_SECONDS);
    const long = (await before.post(TOKEN, cookieBody({ client_id: LONG }))).body;
    expectSeconds(await entrySeconds(before), 86_400);
    const after = await start({ CUSTOMER_TOKEN_TTL: '60' });
    expectSeconds(await entrySeconds(after), 86_400);
    await endToken(after, long.access_token);
    const value = jtiOf(long.access_token);
    await new FeedConsumer([after]).find({ value });
    for (const { clock } of [before, after]) clock.advance({ seconds: 86_399 });
    expect(await isInFeed(after, { value })).toBe(true);
    expect(await infoStatus(after, long.access_token)).toBe(401);
  });

  it('outlives the tokens of a process with a longer lifetime, whichever process ends and publishes them', async () => {
    const short = await start({ CUSTOMER_TOKEN_TTL: '60' });
    expectSeconds(await entrySeconds(short), 60);
    const long = await start({ CUSTOMER_TOKEN_TTL: '40000' });
    for (const at of [short, long]) {
      const { access_token } = await newCustomer(long);
      await endToken(at, access_token);
      const { expires_at } = await new FeedConsumer([at]).find({ value: jtiOf(access_token) });
      expect(Date.parse(expires_at) / 1000).toBeGreaterThan(claimsOf(access_token).exp as number);
    }
    expectSeconds(await entrySeconds(short), 40_000);
  });

  it('outlives the tokens of a process also after a restore of a backup that is older than their lifetime', async () => {
    const service = await start();
    await endToken(service, (await newCustomer(service)).access_token);
    await service.post(TOKEN, cookieBody({ client_id: LONG }));
    expectSeconds(await entrySeconds(service), 86_400);
    const query = (sql: string) => service.application.get(DataSource).query(sql);
    await query(`UPDATE recorded_value SET value = ${DEFAULT_SECONDS} WHERE name = 'longest_customer_token_life'`);
    await query('UPDATE revocation_feed SET position = position - 1000');
    await vi.waitFor(
      async () => {
        const recorded = await query("SELECT value FROM recorded_value WHERE name = 'longest_customer_token_life'");
        expect(recorded).toEqual([{ value: 86_400 }]);
      },
      { timeout: 60_000 },
    );
    const other = await start();
    await vi.waitFor(async () => expectSeconds(await entrySeconds(other), 86_400), { timeout: 60_000 });
  });

  it('outlives the first token with a longer lifetime, whose request is under way during the revocation', async () => {
    const service = await start();
    const ended: string[] = [];
    // each request is held after another one of its statements, so that one has read the generation and no more
    for (const [index, client_id] of LONGER.entries()) {
      const first = await service.post(TOKEN, cookieBody());
      const { entity_id } = first.body;
      const cookie = first.cookies.map((line) => line.split(';')[0]).join('; ');
      const requestId = randomUUID();
      const gate = new StatementGate(service, requestId, index + 1);
      const underWay = service.post(TOKEN, cookieBody({ client_id }), { cookie, 'x-request-id': requestId });
      await gate.reached;
      const path = `/admin/identities/${entity_id}/end_sessions`;
      expect((await manage(service, 'POST', path, bearer(ADMIN_TOKEN), {})).status).toBe(200);
      const { expires_at } = await new FeedConsumer([service]).find({ kind: 'subject', value: entity_id });
      gate.close();
      const { access_token } = (await underWay).body;
      if ((await infoStatus(service, access_token)) === 200) continue;
      ended.push(access_token);
      expect(Date.parse(expires_at) / 1000).toBeGreaterThan(claimsOf(access_token).exp as number);
    }
    expect(ended).toHaveLength(1);
  });
});

describe('a returning customer of a client with a longer lifetime', () => {
  it('costs one SELECT after the lifetime was recorded', async () => {
    const service = await start();
    const first = await service.post(TOKEN, cookieBody({ client_id: LONG }));
    const cookie = first.cookies.map((line) => line.split(';')[0]).join('; ');
    const again = () => service.post(TOKEN, cookieBody({ client_id: LONG }), { cookie });
    const writes = vi.spyOn(clientOf(service), 'write');
    expect(await statementsOf(service, again)).toEqual(['SELECT']);
    const { dialect } = clientOf(service);
    expect(writes.mock.calls.filter(([each]) => each.text(dialect).includes('recorded_value'))).toEqual([]);
  });
});
