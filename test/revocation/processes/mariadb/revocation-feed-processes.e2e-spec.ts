import { DataSource } from 'typeorm';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from '../../../../packages/conformance-kit/src/migrated-schema.js';
import { onMariadb, type TestDatabase } from '../../../../packages/conformance-kit/src/test-database.js';
import { RevocationPublisher } from '../../../../src/access-token/feed/revocation-publisher.js';
import { claimsOf } from '../../../support/agent-tokens.js';
import { bearer } from '../../../support/authorization-headers.js';
import { TOKEN } from '../../../support/cookie-grant.js';
import { manage } from '../../../support/management-api.js';
import { startPod } from '../../../support/processes.js';
import { times } from '../../../support/races.js';
import { FEED_SERVERS, FeedConsumer, readFeed } from '../../../support/revocation-feed.js';
import { testRegistry, writeRegistry } from '../../../support/test-registry.js';
import {
  type HttpClient,
  httpClientOf,
  request,
  startTestService,
  type TestService,
} from '../../../support/test-service.js';
import { newCustomer } from '../../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../../support/use-service.js';

const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };
const environment = { ADMIN_TOKEN };

let database: TestDatabase;
let one: TestService;
/** Runs after the service of the fixture has stopped. */
afterAll(async () => {
  await one?.stop();
  await database?.remove();
});
const two = useService(async () => {
  database = await createTestDatabase();
  one = await startTestService({ registry, environment, database });
  return { registry, environment, database };
});

/** Ends a token. Returns its `jti`. */
async function endToken(service: HttpClient): Promise<string> {
  const { access_token } = await newCustomer(service);
  // a caller repeats a request that a busy database could not serve in time
  await expect.poll(async () => (await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
  return claimsOf(access_token).jti as string;
}
const publisherIn = ({ application }: TestService) => application.get(RevocationPublisher, { strict: false });
const idOf = (service: TestService) => Reflect.get(publisherIn(service), 'id') as string;
const queryOn = (service: TestService, sql: string, parameters: unknown[] = []) =>
  service.application.get(DataSource).query(sql, parameters);
const publisher = async (): Promise<string> =>
  (await queryOn(one, 'SELECT publisher FROM revocation_feed'))[0].publisher;
const inSeconds = (seconds: number) =>
  new Date(one.clock.now() + seconds * 1000).toISOString().replace('T', ' ').slice(0, -1);
/** Commits a revocation and locks it before a publication. */
async function lockUnpublished(value: string): Promise<{ release: () => Promise<void> }> {
  const runner = one.application.get(DataSource).createQueryRunner();
  await queryOn(one, INSERT, ['client', value, inSeconds(0), inSeconds(90_000)]);
  for (;;) {
    await runner.startTransaction();
    const [row] = await runner.query('SELECT published_until FROM revocation WHERE value = ? FOR UPDATE', [value]);
    if (row.published_until === null) break;
    await runner.query('UPDATE revocation SET published_until = NULL WHERE value = ?', [value]);
    await runner.commitTransaction();
  }
  const release = async () => {
    await runner.rollbackTransaction();
    await runner.release();
  };
  return { release };
}
const INSERT = 'INSERT INTO revocation (kind, value, issued_before, expires_at) VALUES (?, ?, ?, ?)';

describe('the revocation feed of two processes', () => {
  it('has each revocation of both processes, for a consumer that reads from both in turn', async () => {
    const consumer = new FeedConsumer([one, two]);
    await consumer.catchUp();
    const ended = await times(40, (index) => endToken(index % 2 === 0 ? one : two));
    for (const value of ended) await consumer.find({ value });
  });

  it('is continued by the other process when the publisher no longer publishes', async () => {
    await new FeedConsumer([one]).find({ value: await endToken(one) });
    const [stopped, other] = (await publisher()) === idOf(one) ? [one, two] : [two, one];
    publisherIn(stopped).onModuleDestroy(); // the process still writes revocations
    await new FeedConsumer([other]).find({ value: await endToken(stopped) });
    expect(await publisher()).toBe(idOf(other));
    Reflect.set(publisherIn(stopped), 'isStopped', false);
    publisherIn(stopped).onApplicationBootstrap();
  });

  it('has the revocations of a process that was killed right after it wrote them', async () => {
    const REGISTRY_FILE = writeRegistry(`${database.folder}/feed-registry.yaml`, registry);
    const pod = await startPod({ database }, { REGISTRY_FILE });
    const ended = await times(5, () => endToken(httpClientOf(pod.url)));
    pod.process.signal('SIGKILL');
    await pod.process.ended;
    const consumer = new FeedConsumer([one]);
    for (const value of ended) await consumer.find({ value });
  });

  it('has a metric of its lag in each process', async () => {
    await new FeedConsumer([one]).find({ value: await endToken(one) });
    for (const { managementUrl } of [one, two]) {
      const { text } = await request(`${managementUrl}/metrics`, {});
      expect(Number(/^cas_revocation_feed_lag_seconds (\S+)/m.exec(text)?.[1])).toBeLessThan(10);
      expect(text).toMatch(/^cas_revocations_published_total \d+/m);
    }
  });

  it('reports a lag while no process publishes', async () => {
    for (const service of [one, two]) publisherIn(service).onModuleDestroy();
    await vi.waitFor(
      async () => {
        const { text } = await request(`${one.managementUrl}/metrics`, {});
        expect(Number(/^cas_revocation_feed_lag_seconds (\S+)/m.exec(text)?.[1])).toBeGreaterThan(1);
      },
      { timeout: 60_000, interval: 200 },
    );
    for (const service of [one, two]) {
      Reflect.set(publisherIn(service), 'isStopped', false);
      publisherIn(service).onApplicationBootstrap();
    }
  });
});

describe('a revocation in the feed', () => {
  it.runIf(onMariadb)(
    'is not missed if its transaction commits after later ones, which it does not delay',
    async () => {
      const consumer = new FeedConsumer([one, two]);
      await consumer.catchUp();
      const runner = one.application.get(DataSource).createQueryRunner();
      await runner.startTransaction();
      await runner.query(INSERT, ['jti', 'late', '9999-12-31 00:00:00.000', inSeconds(90_000)]);
      for (const service of [one, two, one]) await consumer.find({ value: await endToken(service) });
      expect(consumer.has({ value: 'late' })).toBe(false);
      await runner.commitTransaction();
      await runner.release();
      await consumer.find({ value: 'late' });
    },
  );

  it.runIf(onMariadb)('is not delayed by a transaction that holds a lock on another one', async () => {
    const consumer = new FeedConsumer([one]);
    await queryOn(one, INSERT, ['client', 'locked', inSeconds(0), inSeconds(90_000)]);
    await consumer.find({ value: 'locked' });
    const runner = one.application.get(DataSource).createQueryRunner();
    await runner.startTransaction();
    await runner.query("SELECT 1 FROM revocation WHERE value = 'locked' FOR UPDATE");
    await runner.query("UPDATE revocation SET published_until = NULL WHERE value = 'locked'");
    await runner.commitTransaction();
    await runner.startTransaction();
    await runner.query("SELECT 1 FROM revocation WHERE value = 'locked' FOR UPDATE");
    for (const service of [one, two]) await consumer.find({ value: await endToken(service) });
    await runner.rollbackTransaction();
    await runner.release();
  });

  it.runIf(onMariadb)(
    'that stays locked makes pages incomplete, although other revocations are published meanwhile',
    async () => {
      const consumer = new FeedConsumer([one, two]);
      const locked = await lockUnpublished('locked-for-long');
      const complete = async () =>
        (await Promise.all([one, two].map((service) => readFeed(service, '')))).every(({ body }) => body.complete);
      try {
        await vi.waitFor(
          async () => {
            await consumer.find({ value: await endToken(one) });
            expect(await complete()).toBe(false);
          },
          { timeout: 60_000, interval: 50 },
        );
        expect(consumer.has({ value: 'locked-for-long' })).toBe(false);
      } finally {
        await locked.release();
      }
      await consumer.catchUp();
      await consumer.find({ value: 'locked-for-long' });
    },
  );

  it('keeps its position if the same token is ended again and again', async () => {
    const { access_token } = await newCustomer(one);
    const form = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ token: access_token }).toString();
    const end = () => manage(one, 'POST', '/oauth2/revoke', form, body);
    const value = claimsOf(access_token).jti as string;
    await end();
    await new FeedConsumer([two]).find({ value });
    const rows = await queryOn(one, 'SELECT position, published_until FROM revocation WHERE value = ?', [value]);
    await end();
    expect(await queryOn(one, 'SELECT position, published_until FROM revocation WHERE value = ?', [value])).toEqual(
      rows,
    );
  });

  it('is absent after the purge has deleted it', async () => {
    const value = await endToken(one);
    await new FeedConsumer([one]).find({ value });
    await queryOn(one, 'DELETE FROM revocation WHERE value = ?', [value]);
    const late = new FeedConsumer([one]);
    await late.catchUp();
    expect(late.has({ value })).toBe(false);
  });
});
