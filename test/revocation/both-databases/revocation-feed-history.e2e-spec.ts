import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Ended } from '../../../src/feed/ended.entity.js';
import { FeedStore } from '../../../src/feed/feed-store.js';
import { runCommand, runCommandWithInput } from '../../support/operator-commands.js';
import { endNewToken, FEED_SERVERS, FeedConsumer, POLL_PAUSE_MS, readFeed } from '../../support/revocation-feed.js';
import { testRegistry } from '../../support/test-registry.js';
import { type TestService } from '../../support/test-service.js';
import { shortenPauses } from '../../support/timers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

beforeEach(() => shortenPauses(POLL_PAUSE_MS));

const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };

const one = useService({ registry });
const two = useService(() => ({ registry, database: one.database }));
const services = [one, two];

const query = (sql: string) => one.application.get(DataSource).query(sql);
const historyOf = async (): Promise<number> => (await query('SELECT history FROM revocation_feed'))[0].history;
const position = async (): Promise<number> => Number((await query('SELECT position FROM revocation_feed'))[0].position);
const setPosition = (to: number) => query(`UPDATE revocation_feed SET position = ${to}`);
/** A revocation that was published at a position. */
const insertAt = (at: number, value: string) =>
  one.rowsOf(Ended).insert({
    kind: 'token',
    value,
    reason: 'revoked',
    issuedBefore: new Date('9999-12-31T00:00:00Z'),
    expiresAt: new Date(one.clock.now() + 90_000_000),
    position: at,
    publishedUntil: new Date(one.clock.now() + 90_000_000),
  });
const untilHistoryChanges = (from: number) => expect.poll(historyOf).not.toBe(from);
const historyReadBy = async (service: TestService) =>
  Buffer.from((await readFeed(service, '')).body.cursor, 'base64url')
    .toString()
    .split(' ')[1];
/** Until each process uses the history of the database. */
async function untilRead(history: number): Promise<void> {
  for (const service of services) await expect.poll(() => historyReadBy(service)).toBe(`${history}`);
}

describe('a consumer of the revocation feed misses nothing', () => {
  it('with a cursor of another database, whose position is lower than that of this database', async () => {
    const other = await serviceOfTest({ registry });
    const missed = await endNewToken(one);
    await new FeedConsumer([one]).find({ value: missed });
    const consumer = new FeedConsumer([other]);
    await consumer.find({ value: await endNewToken(other) });
    const later = await endNewToken(one);
    await new FeedConsumer([one]).find({ value: later });
    const moved = new FeedConsumer(services);
    moved.cursor = consumer.cursor;
    await moved.catchUp();
    expect(moved.has({ value: missed })).toBe(true);
  });

  it('after the database was restored from a backup while processes ran, even if its position caught up again', async () => {
    const backup = await position();
    const before = await historyOf();
    const consumer = new FeedConsumer(services);
    await consumer.find({ value: await endNewToken(one) });
    const restoredFrom = await position();
    expect(restoredFrom).toBeGreaterThan(backup + 1);
    await setPosition(backup);
    await untilHistoryChanges(before);
    await untilRead(await historyOf());
    await insertAt(backup + 1, 'after-the-restore');
    await setPosition(restoredFrom + 1);
    await consumer.catchUp();
    expect(consumer.has({ value: 'after-the-restore' })).toBe(true);
  });

  it('after the operator ran revocation-feed restart', async () => {
    const consumer = new FeedConsumer(services);
    await consumer.find({ value: await endNewToken(one) });
    const highest = await position();
    await insertAt(highest - 1, 'below-the-cursor');
    await consumer.catchUp();
    expect(consumer.has({ value: 'below-the-cursor' })).toBe(false);
    expect(await runCommand(one, 'revocation-feed', 'restart')).toBe('restarted\n');
    await untilRead(await historyOf());
    await consumer.catchUp();
    expect(consumer.has({ value: 'below-the-cursor' })).toBe(true);
  });

  it('that waits while the history changes', async () => {
    const consumer = new FeedConsumer([one]);
    const known = await endNewToken(one);
    await consumer.find({ value: known });
    await consumer.catchUp();
    const waiting = readFeed(one, `?after=${consumer.cursor}&wait=25`);
    await runCommand(one, 'revocation-feed', 'restart');
    const { revocations } = (await waiting).body;
    expect(revocations.map(({ value }: { value: string }) => value)).toContain(known);
  });
});

describe('the history of the revocation feed', () => {
  let before: number;
  beforeEach(async () => {
    before = await historyOf();
  });

  it('changes once when several processes notice a restore', async () => {
    const highest = await position();
    await setPosition(highest - 1_000);
    await untilHistoryChanges(before);
    const renewed = await historyOf();
    await sleep(500); // several reads of each process
    expect(await historyOf()).toBe(renewed);
    await setPosition(highest + 1);
  });

  it('stays the same after one read of a node that lags', async () => {
    const store = one.application.get(FeedStore);
    const readState = store.readState.bind(store);
    let lowerReads = 0;
    vi.spyOn(store, 'readState').mockImplementation(async () => {
      const state = await readState();
      if (lowerReads > 0) return state;
      lowerReads += 1;
      return { ...state, position: 1 };
    });
    await expect.poll(() => lowerReads).toBe(1);
    await sleep(500); // the next reads
    expect(await historyOf()).toBe(before);
    await new FeedConsumer([one]).find({ value: await endNewToken(one) });
  });

  it.each([[[]], [['renew']], [['restart', 'now']]])('has no command revocation-feed with %j', async (parameters) => {
    await expect(runCommandWithInput(one, '', 'revocation-feed', ...parameters)).rejects.toThrow('expected');
    expect(await historyOf()).toBe(before);
  });
});
