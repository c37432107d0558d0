import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { expect, it } from 'vitest';
import { FeedPublisher } from '../../../../src/feed/feed-publisher.js';
import { EventConsumer } from '../../../support/customer-events.js';
import { manage } from '../../../support/management-api.js';
import { startPod } from '../../../support/processes.js';
import { times } from '../../../support/races.js';
import { endNewToken } from '../../../support/revocation-feed.js';
import { ACME, testRegistry, writeRegistry } from '../../../support/test-registry.js';
import type { TestService } from '../../../support/test-service.js';
import { newCustomer } from '../../../support/transfers.js';
import { ADMIN_TOKENS, useService } from '../../../support/use-service.js';

const one = useService();
const two = useService(() => ({ database: one.database }));

const INSERT = `INSERT INTO customer_event (id, kind, organization_id, customer_id, created_at, expires_at)
  VALUES (?, 'customer.became_user', ?, ?, NOW(3), NOW(3) + INTERVAL 1 DAY)`;
const publisherIn = ({ application }: TestService) => application.get(FeedPublisher, { strict: false });
const publisher = async (): Promise<string> =>
  (await one.application.get(DataSource).query('SELECT publisher FROM revocation_feed'))[0].publisher;

/** Erases a new customer, and returns its id. */
async function erasedAt(service: typeof one): Promise<string> {
  const { entity_id } = await newCustomer(service);
  // a caller repeats a request that a busy database could not serve in time
  await expect.poll(async () => (await service.erase(entity_id)).status).toBe(200);
  return entity_id;
}

it('protocol §7.8: each event of two processes arrives once at a consumer that reads from both in turn', async () => {
  const consumer = new EventConsumer([one, two]);
  await consumer.catchUp();
  const erased = await times(40, (index) => erasedAt(index % 2 === 0 ? one : two));
  for (const entityId of erased) await consumer.about(entityId);
  await consumer.catchUp();
  for (const entityId of erased) expect(consumer.naming(entityId)).toHaveLength(1);
});

it('protocol §7.8: an event whose transaction commits after later ones is not missed, and does not delay them', async () => {
  const consumer = new EventConsumer([one, two]);
  await consumer.catchUp();
  const runner = one.application.get(DataSource).driver.createQueryRunner('master');
  const late = randomUUID();
  await runner.startTransaction();
  await runner.query(INSERT, [randomUUID(), ACME, late]);
  for (const service of [one, two, one]) await consumer.about(await erasedAt(service));
  await endNewToken(one);
  expect(consumer.naming(late)).toEqual([]);
  await runner.commitTransaction();
  await runner.release();
  await consumer.about(late);
});

it('protocol §7.8: events are published by the other process when the publisher no longer publishes', async () => {
  await new EventConsumer([one]).about(await erasedAt(one));
  const isOne = (await publisher()) === Reflect.get(publisherIn(one), 'id');
  const [stopped, other] = isOne ? [one, two] : [two, one];
  publisherIn(stopped).onModuleDestroy(); // the process still writes events
  await new EventConsumer([other]).about(await erasedAt(stopped));
  Reflect.set(publisherIn(stopped), 'isStopped', false);
  await publisherIn(stopped).onApplicationBootstrap();
});

it('protocol §7.8: the events of a process that was killed right after it wrote them are not missed', async () => {
  const REGISTRY_FILE = writeRegistry(`${one.database.folder}/events-registry.yaml`, testRegistry());
  const pod = await startPod(one, { REGISTRY_FILE, MIGRATE_ON_START: 'true', ADMIN_TOKENS });
  const customers = await times(5, () => newCustomer(one));
  const admin = { authorization: `Bearer ${ADMIN_TOKENS.split(':')[2]}` };
  await times(5, async (index) => {
    const path = `/admin/customers/${customers[index]?.entity_id}`;
    expect((await manage(pod as never, 'DELETE', path, admin)).status).toBe(200);
  });
  pod.process.signal('SIGKILL');
  await pod.process.ended;
  const consumer = new EventConsumer([one, two]);
  for (const { entity_id } of customers) await consumer.about(entity_id);
});
