import { ServiceUnavailableException } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { FIND_STATE, PositionWriter } from '../../../src/access-token/feed/position-writer.js';
import { RevocationPages } from '../../../src/access-token/feed/revocation-pages.js';
import { RevocationPublisher } from '../../../src/access-token/feed/revocation-publisher.js';
import { FeedWaiters } from '../../../src/introspection/revocation-feed.js';
import { Database } from '../../../src/platform/database/database.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { FEED_SERVERS, FeedConsumer, readFeed } from '../../support/revocation-feed.js';
import { testRegistry } from '../../support/test-registry.js';
import { newCustomer } from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };

const service = useService({ registry });

const newCustomerId = async () => claimsOf((await newCustomer(service)).access_token).sub as string;

/** Runs `meanwhile` after the next publication, whose response then does not arrive. */
function losePublication(meanwhile: () => Promise<unknown>): void {
  const writer = service.application.get(PositionWriter, { strict: false });
  const publish = writer.publish.bind(writer);
  let isLost = false;
  vi.spyOn(writer, 'publish').mockImplementation(async (...parameters) => {
    const publication = await publish(...parameters);
    if (isLost || !publication) return publication;
    isLost = true;
    await meanwhile();
    throw new ServiceUnavailableException('the connection was lost');
  });
}

describe('a revocation in the feed', () => {
  it('is not missed if it is changed after a publication whose response was lost', async () => {
    const sub = await newCustomerId();
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    const changed = new Promise<void>((resolve) => {
      losePublication(async () => {
        await consumer.find({ value: sub, generation: 1 });
        await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
        resolve();
      });
    });
    await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
    await changed;
    await consumer.find({ value: sub, generation: 2 });
  });
});

describe('a page of the feed', () => {
  const lost = () => Promise.reject(Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' }));
  const untilIncomplete = () => expect.poll(async () => (await readFeed(service, '')).body.complete).toBe(false);

  it('is not complete while revocations wait because no process can publish them', async () => {
    const sub = await newCustomerId();
    vi.spyOn(service.application.get(PositionWriter, { strict: false }), 'publish').mockImplementation(lost);
    await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
    await untilIncomplete();
    vi.restoreAllMocks();
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    await consumer.find({ value: sub });
  });

  it('is not complete while the process cannot read whether revocations wait', async () => {
    const database = service.application.get(Database);
    const select = database.select.bind(database);
    vi.spyOn(database, 'select').mockImplementation((statement, parameters) =>
      (statement as unknown) === FIND_STATE ? lost() : select(statement, parameters),
    );
    await untilIncomplete();
    vi.restoreAllMocks();
    await new FeedConsumer([service]).catchUp();
  });

  it('that was read before a publication does not let a later request wait', async () => {
    const [pages, publisher] = [RevocationPages, RevocationPublisher].map((type) =>
      service.application.get(type, { strict: false }),
    ) as [RevocationPages, RevocationPublisher];
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    const sub = await newCustomerId();
    const readFromDatabase = Reflect.get(pages, 'readAlone');
    let release = () => {};
    Reflect.set(pages, 'readAlone', async (after: number) => {
      Reflect.set(pages, 'readAlone', readFromDatabase);
      const page = await readFromDatabase(after);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return page;
    });
    const { cursor } = consumer;
    const requests = vi.spyOn(pages, 'read');
    const first = readFeed(service, `?after=${cursor}`);
    await expect.poll(() => requests.mock.calls).toHaveLength(1);
    const highest = () => publisher.state.highest?.position ?? 0;
    const before = highest();
    await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
    await expect.poll(highest).toBeGreaterThan(before);
    const wait = vi.spyOn(service.application.get(FeedWaiters, { strict: false }), 'wait');
    const second = readFeed(service, `?after=${cursor}&wait=25`);
    await expect.poll(() => requests.mock.calls).toHaveLength(2);
    release();
    expect((await first).body.revocations).toEqual([]);
    expect((await second).body.revocations).toMatchObject([{ value: sub }]);
    expect(wait).not.toHaveBeenCalled();
  });

  it('is read again when a wait ends without an entry', async () => {
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    const waiters = service.application.get(FeedWaiters, { strict: false });
    const reading = readFeed(service, `?after=${consumer.cursor}&wait=25`);
    await expect.poll(() => waiters.count).toBe(1);
    const publisher = service.application.get(RevocationPublisher, { strict: false });
    vi.spyOn(publisher, 'isBehind', 'get').mockReturnValue(true);
    for (const end of Reflect.get(waiters, 'ends')) end('ended');
    expect((await reading).body).toMatchObject({ revocations: [], complete: false });
  });
});
