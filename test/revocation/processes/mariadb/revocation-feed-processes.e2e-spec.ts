import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { FeedPublisher } from '../../../../src/feed/feed-publisher.js';
import { FeedStore } from '../../../../src/feed/feed-store.js';
import { Database } from '../../../../src/platform/database/database.js';
import { claimsOf } from '../../../support/agent-tokens.js';
import { metricOf } from '../../../support/management-api.js';
import { startPod } from '../../../support/processes.js';
import { times } from '../../../support/races.js';
import { endNewToken, FEED_SERVERS, FeedConsumer, readFeed } from '../../../support/revocation-feed.js';
import { testRegistry, writeRegistry } from '../../../support/test-registry.js';
import { httpClientOf, type TestService } from '../../../support/test-service.js';
import { newCustomer } from '../../../support/transfers.js';
import { useService } from '../../../support/use-service.js';

const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };
const one = useService({ registry });
const two = useService(() => ({ registry, database: one.database }));

const publisherIn = ({ application }: TestService) => application.get(FeedPublisher, { strict: false });
function publishAgain(service: TestService): void {
  Reflect.set(publisherIn(service), 'isStopped', false);
  publisherIn(service).onApplicationBootstrap();
}
const idOf = (service: TestService) => Reflect.get(publisherIn(service), 'id') as string;
const queryOn = (service: TestService, sql: string, parameters: unknown[] = []) =>
  service.application.get(DataSource).query(sql, parameters);
const publisher = async (): Promise<string> =>
  (await queryOn(one, 'SELECT publisher FROM revocation_feed'))[0].publisher;
const position = async (): Promise<number> =>
  Number((await queryOn(one, 'SELECT position FROM revocation_feed'))[0].position);
const inSeconds = (seconds: number) =>
  new Date(one.clock.now() + seconds * 1000).toISOString().replace('T', ' ').slice(0, -1);
/** Commits a revocation and locks it before a publication. */
async function lockUnpublished(value: string): Promise<{ release: () => Promise<void> }> {
  const runner = one.application.get(DataSource).driver.createQueryRunner('master');
  await queryOn(one, INSERT, ['client', value, inSeconds(0), inSeconds(90_000)]);
  for (;;) {
    await runner.startTransaction();
    const [row] = await runner.query('SELECT published_until FROM ended WHERE value = ? FOR UPDATE', [value]);
    if (row.published_until === null) break;
    await runner.query('UPDATE ended SET published_until = NULL WHERE value = ?', [value]);
    await runner.commitTransaction();
  }
  const release = async () => {
    await runner.rollbackTransaction();
    await runner.release();
  };
  return { release };
}
const INSERT = "INSERT INTO ended (kind, value, reason, issued_before, expires_at) VALUES (?, ?, 'revoked', ?, ?)";

describe('the revocation feed of two processes', () => {
  it('has each revocation of both processes, for a consumer that reads from both in turn', async () => {
    const consumer = new FeedConsumer([one, two]);
    await consumer.catchUp();
    const ended = await times(40, (index) => endNewToken(index % 2 === 0 ? one : two));
    for (const value of ended) await consumer.find({ value });
  });

  it('is continued by the other process when the publisher no longer publishes', async () => {
    await new FeedConsumer([one]).find({ value: await endNewToken(one) });
    const [stopped, other] = (await publisher()) === idOf(one) ? [one, two] : [two, one];
    publisherIn(stopped).onModuleDestroy(); // the process still writes revocations
    await new FeedConsumer([other]).find({ value: await endNewToken(stopped) });
    expect(await publisher()).toBe(idOf(other));
    publishAgain(stopped);
  });

  it('has the revocations of a process that was killed right after it wrote them', async () => {
    const REGISTRY_FILE = writeRegistry(`${one.database.folder}/feed-registry.yaml`, registry);
    const pod = await startPod(one, { REGISTRY_FILE, MIGRATE_ON_START: 'true' });
    const ended = await times(5, () => endNewToken(httpClientOf(pod.url)));
    pod.process.signal('SIGKILL');
    await pod.process.ended;
    const consumer = new FeedConsumer([one]);
    for (const value of ended) await consumer.find({ value });
  });

  it('has a metric of its lag in each process, which rises while no process publishes', async () => {
    const lagOf = (service: TestService) => metricOf(service, 'cas_revocation_feed_lag_seconds');
    await new FeedConsumer([one]).find({ value: await endNewToken(one) });
    for (const service of [one, two]) {
      expect(await lagOf(service)).toBeLessThan(60);
      expect(await metricOf(service, 'cas_revocations_published_total')).toBeGreaterThanOrEqual(0);
    }
    for (const service of [one, two]) publisherIn(service).onModuleDestroy();
    const isBehind = async () => expect(await lagOf(one)).toBeGreaterThan(1);
    await vi.waitFor(isBehind, { timeout: 60_000, interval: 200 });
    for (const service of [one, two]) publishAgain(service);
  });
});

describe('the revocation feed of a process with few connections', () => {
  const narrow = useService({ registry, environment: { DB_POOL_SIZE: '2' } });
  const other = useService(() => ({ registry, database: narrow.database }));

  it('has a revocation while slow transactions wait for each other', async () => {
    const database = narrow.application.get(Database);
    const consumer = new FeedConsumer([narrow]);
    await consumer.catchUp();
    publisherIn(other).onModuleDestroy();
    let isSlow = true;
    const transactions = times(3, async () => {
      while (isSlow) await database.transaction(() => sleep(2_500));
    });
    try {
      await consumer.find({ value: await endNewToken(other) });
      await consumer.catchUp();
    } finally {
      isSlow = false;
      await transactions;
      publishAgain(other);
    }
  });
});

describe('a revocation in the feed', () => {
  it('is not missed if its transaction commits after later ones, which it does not delay', async () => {
    const consumer = new FeedConsumer([one, two]);
    await consumer.catchUp();
    const runner = one.application.get(DataSource).driver.createQueryRunner('master');
    await runner.startTransaction();
    await runner.query(INSERT, ['token', 'late', '9999-12-31 00:00:00.000', inSeconds(90_000)]);
    for (const service of [one, two, one]) await consumer.find({ value: await endNewToken(service) });
    expect(consumer.has({ value: 'late' })).toBe(false);
    await runner.commitTransaction();
    await runner.release();
    await consumer.find({ value: 'late' });
  });

  it('that stays locked makes pages incomplete, although other revocations are published meanwhile', async () => {
    const consumer = new FeedConsumer([one, two]);
    const locked = await lockUnpublished('locked-for-long');
    const complete = async () =>
      (await Promise.all([one, two].map((service) => readFeed(service, '')))).every(({ body }) => body.complete);
    try {
      await vi.waitFor(
        async () => {
          await consumer.find({ value: await endNewToken(one) });
          expect(await complete()).toBe(false);
        },
        { timeout: 60_000, interval: 50 },
      );
      expect(consumer.has({ value: 'locked-for-long' })).toBe(false);
      // both processes go on, and publish no position without a revocation
      const before = await position();
      const reads = [one, two].map((service) =>
        vi.spyOn(service.application.get(FeedStore, { strict: false }), 'readState'),
      );
      const haveReadAgain = () => expect(Math.min(...reads.map(({ mock }) => mock.calls.length))).toBeGreaterThan(2);
      await vi.waitFor(haveReadAgain, { timeout: 60_000, interval: 50 });
      expect(await position()).toBe(before);
    } finally {
      await locked.release();
    }
    await consumer.catchUp();
    await consumer.find({ value: 'locked-for-long' });
  });

  it('keeps its position if the same token is ended again and again', async () => {
    const { access_token: token } = await newCustomer(one);
    const value = claimsOf(token).sid as string;
    const end = () => two.admin('POST', '/oauth2/revoke', { token });
    const row = () => queryOn(one, 'SELECT position, published_until FROM ended WHERE value = ?', [value]);
    await end();
    await new FeedConsumer([two]).find({ value });
    const before = await row();
    await end();
    expect(await row()).toEqual(before);
  });
});
