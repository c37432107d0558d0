import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  EventReader,
  MAX_WAITING_EVENT_REQUESTS,
  RevocationReader,
} from '../../src/discovery/introspection/feed-reader.js';
import { CustomerEvent } from '../../src/feed/customer-event.entity.js';
import { FeedStore } from '../../src/feed/feed-store.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { EVENT_SERVERS, EVENTS_SECRET, EventConsumer, readEvents } from '../support/customer-events.js';
import { endSessionsAsOperator } from '../support/end-sessions.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import { runCommand } from '../support/operator-commands.js';
import { endNewToken, FeedConsumer, POLL_PAUSE_MS, readFeed } from '../support/revocation-feed.js';
import { ACME, AT_RIVAL, testRegistry } from '../support/test-registry.js';
import { shortenPauses } from '../support/timers.js';
import { newCustomer } from '../support/transfers.js';
import { ADMIN_TOKEN, DAY_SECONDS, useService } from '../support/use-service.js';

beforeEach(() => shortenPauses(POLL_PAUSE_MS));

const registry = { ...testRegistry(), resource_servers: EVENT_SERVERS };
const service = useService({ registry });

const cursorOf = (text: string) => Buffer.from(text).toString('base64url');
const untilWaiting = (count: number, reader: typeof EventReader | typeof RevocationReader = EventReader) =>
  expect.poll(() => Reflect.get(service.application.get(reader, { strict: false }), 'ends').size).toBe(count);

/** Erases a new customer, and returns its id. */
async function erasedCustomer(visit: object = {}): Promise<string> {
  const { entity_id } = (await service.visit(undefined, visit)).body;
  expect((await service.erase(entity_id)).status).toBe(200);
  return entity_id;
}
async function current(id?: string): Promise<EventConsumer> {
  const consumer = new EventConsumer([service], id);
  await consumer.catchUp();
  return consumer;
}

describe('protocol §7.8: a request for events', () => {
  it.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong secret', basic('all-events', 'wrong')],
    ['an unknown resource server', basic('unknown', EVENTS_SECRET)],
    ['a wrong admin token', bearer('wrong')],
  ])('is refused with %s', async (_, headers) => {
    expectError(await readEvents(service, '', headers), { status: 401, error: 'invalid_client', hint: undefined });
  });

  it('of a resource server without events in its entry is refused', async () => {
    expectError(await readEvents(service, '', basic('no-events', EVENTS_SECRET)), {
      ...{ status: 403, error: 'insufficient_scope' },
      hint: 'events: required in the entry of the resource server',
    });
  });

  it('gets the events of the organizations in the entry of the resource server only', async () => {
    const [ofAcme, ofRival] = [await erasedCustomer(), await erasedCustomer(AT_RIVAL)];
    await new EventConsumer([service]).about(ofRival);
    const seen = async (id?: string) => {
      const consumer = await current(id);
      return [ofAcme, ofRival].map((entityId) => consumer.naming(entityId).length);
    };
    expect(await seen()).toEqual([1, 1]);
    expect(await seen('all-events')).toEqual([1, 1]);
    expect(await seen('acme-events')).toEqual([1, 0]);
    expect(await seen('empty-events')).toEqual([0, 0]);
  });

  it('gets the kinds that it names only, and moves past the others', async () => {
    const { entity_id } = await newCustomer(service);
    await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
    const entityId = await erasedCustomer();
    await new EventConsumer([service]).about(entityId);
    const kindsOf = async (query: string) => {
      const consumer = new EventConsumer([service]);
      await consumer.read(0, query);
      expect((await consumer.read(0)).events, 'after the page').toEqual([]);
      return new Set(consumer.events.map(({ kind }) => kind));
    };
    expect(await kindsOf('&kinds=customer.erased')).toEqual(new Set(['customer.erased']));
    expect(await kindsOf('&kinds=customer.erased,customer.sessions_ended')).toEqual(
      new Set(['customer.erased', 'customer.sessions_ended']),
    );
    expect(await kindsOf('&kinds=customer.linked')).toEqual(new Set());
  });

  it.each([
    'customer.unknown',
    'customer_erased',
    'customer.erased,',
    ',',
    'customer.erased, customer.linked',
    'erased',
  ])('is refused with unknown kinds: %s', async (kinds) => {
    expectInvalidRequest(await readEvents(service, `?kinds=${encodeURIComponent(kinds)}`), /^kinds: must be kinds/);
  });

  it.each(['26', '-1', '1.5'])('is refused with an invalid wait: %s', async (wait) => {
    expectInvalidRequest(await readEvents(service, `?wait=${wait}`), 'wait: must be 0 to 25');
  });

  it.each([
    '0',
    cursorOf('1 1 -1'),
    cursorOf('1 1 01'),
    cursorOf('1 1'),
    cursorOf('1 1 1 1'),
    cursorOf('1 1 1 all'),
    cursorOf('2 1 1'),
    `${cursorOf('1 1 1')}%3D`,
    'A'.repeat(65),
  ])('is refused with an invalid cursor: %s', async (after) => {
    expectInvalidRequest(await readEvents(service, `?after=${after}`), /^after: /);
  });

  it('is refused with a cursor of the revocation feed, and the other way round', async () => {
    const events = await current();
    const revocations = new FeedConsumer([service], bearer(ADMIN_TOKEN));
    await revocations.catchUp();
    expectInvalidRequest(await readEvents(service, `?after=${revocations.cursor}`), /^after: /);
    expectInvalidRequest(await readFeed(service, `?after=${events.cursor}`, bearer(ADMIN_TOKEN)), /^after: /);
  });

  it.each([
    ['that is higher than any position', (history: string) => `1 ${history} 999999999999999`],
    ['of another history', (history: string) => `1 ${Number(history) === 1 ? 2 : 1} 999999999999999`],
  ])('begins again with a cursor %s', async (_, cursor) => {
    const entityId = await erasedCustomer();
    const consumer = new EventConsumer([service]);
    await consumer.about(entityId);
    const [, history = ''] = Buffer.from(`${consumer.cursor}`, 'base64url').toString().split(' ');
    const again = new EventConsumer([service]);
    again.cursor = cursorOf(cursor(history));
    await again.catchUp();
    expect(again.naming(entityId)).toHaveLength(1);
  });

  it('begins again after the operator ran revocation-feed restart', async () => {
    const entityId = await erasedCustomer();
    const consumer = new EventConsumer([service]);
    await consumer.about(entityId);
    await runCommand(service, 'revocation-feed', 'restart');
    await consumer.about(entityId, 2);
    const [first, second] = consumer.naming(entityId);
    expect(second).toEqual(first);
  });

  it('that waits gets an event without a further request, and no event of a kind that it does not name', async () => {
    const consumer = await current();
    const [all, linked] = [consumer.cursor, consumer.cursor];
    const reading = readEvents(service, `?after=${all}&wait=25`);
    const other = readEvents(service, `?after=${linked}&wait=3&kinds=customer.linked`);
    await untilWaiting(2);
    const entityId = await erasedCustomer();
    expect((await reading).body.events).toMatchObject([{ kind: 'customer.erased', entity_id: entityId }]);
    expect((await other).body.events).toEqual([]);
  });

  it(`is one of at most ${MAX_WAITING_EVENT_REQUESTS} that wait; one more ends the longest of these, and no wait of a verifier`, async () => {
    const verifier = new FeedConsumer([service], bearer(ADMIN_TOKEN));
    await verifier.catchUp();
    const verifying = verifier.read(25);
    await untilWaiting(1, RevocationReader);
    const { cursor } = await current();
    const wait = () => readEvents(service, `?after=${cursor}&wait=25`);
    const longest = wait();
    await untilWaiting(1);
    const others = Array.from({ length: MAX_WAITING_EVENT_REQUESTS }, wait);
    expect((await longest).body).toMatchObject({ events: [], complete: true });
    await untilWaiting(MAX_WAITING_EVENT_REQUESTS);
    await untilWaiting(1, RevocationReader);
    const entityId = await erasedCustomer();
    for (const { body } of await Promise.all(others)) expect(body.events).toMatchObject([{ entity_id: entityId }]);
    expect((await verifying).revocations).toMatchObject([{ value: entityId }]);
  });

  it('gets events in pages that each have at most 5,000, and each event arrives once', async () => {
    const now = service.clock.now();
    const rows = Array.from({ length: 5_300 }, () => ({
      ...{ id: randomUUID(), kind: 'customer.became_user' as const, organizationId: ACME, customerId: randomUUID() },
      ...{ intoId: null, createdAt: new Date(now), expiresAt: new Date(now + DAY_SECONDS * 1000), position: null },
    }));
    const table = service.rowsOf(CustomerEvent);
    const follower = await current();
    for (let first = 0; first < rows.length; first += 100) await table.insert(rows.slice(first, first + 100));
    while (follower.events.filter(({ kind }) => kind === 'customer.became_user').length < rows.length)
      await follower.read(1);
    const late = await current();
    for (const { events } of [follower, late]) {
      const ids = events.filter(({ kind }) => kind === 'customer.became_user').map(({ id }) => id);
      expect(ids).toHaveLength(rows.length);
      expect(new Set(ids)).toEqual(new Set(rows.map(({ id }) => id)));
    }
    const first = (await readEvents(service)).body;
    expect(first.complete).toBe(false);
    expect(first.events.length).toBeGreaterThanOrEqual(4_500);
    expect(first.events.length).toBeLessThanOrEqual(5_000);
    await table.delete({ kind: 'customer.became_user' });
  });

  it('does not count events among the entries of the revocation feed in force', async () => {
    const entries = async () => Number((await service.rowsOf(CustomerEvent).query(ENTRIES))[0].entries);
    await new FeedConsumer([service], bearer(ADMIN_TOKEN)).find({ value: await endNewToken(service) });
    const before = await entries();
    const entityId = await erasedCustomer();
    await new EventConsumer([service]).about(entityId);
    await new FeedConsumer([service], bearer(ADMIN_TOKEN)).find({ value: entityId });
    expect(await entries()).toBe(before + 1); // the generation of the erased customer
  });

  it('is 503 when the process has not read for 3 s what waits', async () => {
    const lost = () => Promise.reject(Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' }));
    vi.spyOn(service.application.get(FeedStore), 'readState').mockImplementation(lost);
    const status = async () => (await readEvents(service)).status;
    await expect.poll(status, { timeout: 10_000 }).toBe(503);
    vi.restoreAllMocks();
    await expect.poll(status).toBe(200);
  });
});

const ENTRIES = 'SELECT entries FROM revocation_feed';
