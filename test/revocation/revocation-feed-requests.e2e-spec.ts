import { beforeEach, describe, expect, it, vi } from 'vitest';
import { MAX_WAITING_REQUESTS, RevocationReader } from '../../src/discovery/introspection/feed-reader.js';
import { Ended } from '../../src/feed/ended.entity.js';
import { Database } from '../../src/platform/database/database.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import {
  endNewToken,
  FEED_SECRET,
  FEED_SERVERS,
  FeedConsumer,
  POLL_PAUSE_MS,
  readFeed,
} from '../support/revocation-feed.js';
import { clientOf } from '../support/statements.js';
import { testRegistry } from '../support/test-registry.js';
import { startTestService } from '../support/test-service.js';
import { shortenPauses } from '../support/timers.js';
import { useService } from '../support/use-service.js';

beforeEach(() => shortenPauses(POLL_PAUSE_MS));

const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };

const service = useService({ registry });

const feed = () => service.application.get(RevocationReader, { strict: false });
const untilWaiting = (count: number) => expect.poll(() => Reflect.get(feed(), 'ends').size).toBe(count);
const cursorOf = (text: string) => Buffer.from(text).toString('base64url');
/** A consumer that has read everything so far. */
async function currentConsumer(): Promise<FeedConsumer> {
  const consumer = new FeedConsumer([service]);
  await consumer.catchUp();
  return consumer;
}

describe('a request for the revocation feed', () => {
  it.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong secret', basic('customer-server', 'wrong')],
    ['an unknown resource server', basic('unknown', FEED_SECRET)],
    ['a wrong admin token', bearer('wrong')],
    ['junk characters', { authorization: 'Basic \u00e4\u00f6' }],
  ])('is refused with %s', async (_, headers) => {
    const response = await readFeed(service, '', headers);
    expectError(response, { status: 401, error: 'invalid_client', hint: undefined });
  });

  it.each(['after=', `after=${cursorOf('1 1 0 customer-api')}`, 'wait=', 'unknown=1'])(
    'ignores what the route does not declare, and empty parameters: %s',
    async (query) => {
      expect((await readFeed(service, `?${query}`)).status).toBe(200);
    },
  );

  it.each([
    '0',
    cursorOf('1 1 -1 customer-api'),
    cursorOf('1 1 01 customer-api'),
    cursorOf('1 0 1 customer-api'),
    cursorOf('1 1 customer-api'),
    cursorOf('1 1 1'),
    cursorOf('1 1 1 OR 1=1'),
    cursorOf('1 1 1 another-api'),
    cursorOf('2 1 1 customer-api'),
    cursorOf('1 1 9999999999999999 customer-api'),
    `${cursorOf('1 1 1 customer-api')}%3D`,
    'A'.repeat(65),
  ])('is refused with an invalid cursor: %s', async (after) => {
    expectInvalidRequest(await readFeed(service, `?after=${after}`), /^after: /);
  });

  it.each(['26', '-1', '1.5', '1e1', 'Infinity'])('is refused with an invalid wait, or two: %s', async (wait) => {
    expectInvalidRequest(await readFeed(service, `?wait=${wait}`), 'wait: must be 0 to 25');
    expectInvalidRequest(await readFeed(service, `?wait=1&wait=${wait}`), /more than once/);
  });

  it('gets everything in force in pages whose entries each arrive once', async () => {
    const rows = Array.from({ length: 5_300 }, (_, index) => ({
      kind: 'token' as const,
      value: `page-test-${index}`,
      reason: 'revoked',
      issuedBefore: new Date('9999-12-31T00:00:00Z'),
      expiresAt: new Date(service.clock.now() + 90_000_000),
    }));
    const table = service.rowsOf(Ended);
    for (let first = 0; first < rows.length; first += 100) await table.insert(rows.slice(first, first + 100));
    const follower = await currentConsumer();
    await follower.find({ value: 'page-test-5299' });
    await follower.catchUp();
    const late = await currentConsumer();
    for (const { entries } of [follower, late]) {
      const values = entries.map(({ value }) => value).filter((value) => value.startsWith('page-test-'));
      expect(values.length).toBe(rows.length);
      expect(new Set(values).size).toBe(rows.length);
    }
    const first = (await readFeed(service, '')).body;
    expect(first.complete).toBe(false);
    expect(first.revocations.length).toBeGreaterThanOrEqual(4_500); // a full page leaves out at most one position
    expect(first.revocations.length).toBeLessThanOrEqual(5_000);
  });

  it('with a cursor that is higher than any position, or of other audiences, gets everything in force again', async () => {
    const sid = await endNewToken(service);
    await (await currentConsumer()).find({ value: sid });
    const current = await currentConsumer();
    const [version, history] = Buffer.from(`${current.cursor}`, 'base64url').toString().split(' ');
    const other = new FeedConsumer([service], basic('agent-server', FEED_SECRET));
    await other.catchUp();
    expect(other.has({ value: sid })).toBe(false);
    // the second one as if the registry then gave the resource server the audience customer-api
    for (const cursor of [cursorOf(`${version} ${history} 999999999999999 customer-api`), other.cursor]) {
      const consumer = new FeedConsumer([service]);
      consumer.cursor = cursor;
      await consumer.catchUp();
      expect(consumer.has({ value: sid })).toBe(true);
    }
  });

  it('that waits gets an entry without a further request, and holds no connection to the database', async () => {
    const consumer = await currentConsumer();
    const reading = consumer.read(25);
    await untilWaiting(1);
    if (clientOf(service).usage) expect(clientOf(service).usage?.()).toMatchObject({ waiting: 0 });
    const sid = await endNewToken(service);
    expect((await reading).revocations).toMatchObject([{ kind: 'session', value: sid, epoch: 1 }]);
    await untilWaiting(0);
    const { cursor } = consumer;
    expect(await consumer.read(1), 'without a new entry').toEqual({ revocations: [], complete: true, cursor });
  });

  it('of many that wait for the same entry shares their statements', async () => {
    const { cursor } = await currentConsumer();
    const waiting = Array.from({ length: 50 }, () => readFeed(service, `?after=${cursor}&wait=25`));
    await untilWaiting(50);
    const pages = vi.spyOn(service.application.get(Database), 'select');
    const sid = await endNewToken(service);
    for (const { body } of await Promise.all(waiting)) expect(body.revocations).toMatchObject([{ value: sid }]);
    const reads = pages.mock.calls.filter(([statement]) =>
      statement.text({} as never).includes('FROM ended WHERE position'),
    );
    pages.mockRestore();
    expect(reads.length).toBeLessThan(10);
  });

  it('stops to wait when its caller disconnects', async () => {
    const { cursor } = await currentConsumer();
    const caller = new AbortController();
    const headers = basic('customer-server', FEED_SECRET);
    const url = `${service.managementUrl}/oauth2/revocations?after=${cursor}&wait=25`;
    const aborted = expect(fetch(url, { headers, signal: caller.signal })).rejects.toThrow();
    await untilWaiting(1);
    caller.abort();
    await aborted;
    await untilWaiting(0);
  });

  it(`is one of at most ${MAX_WAITING_REQUESTS} that wait; one more ends the longest wait, without an error`, async () => {
    const { cursor } = await currentConsumer();
    const statuses: Promise<number>[] = [];
    for (let count = 1; count <= MAX_WAITING_REQUESTS; count++) {
      statuses.push(readFeed(service, `?after=${cursor}&wait=25`).then(({ status }) => status));
      if (count === 1) await untilWaiting(1);
    }
    await untilWaiting(MAX_WAITING_REQUESTS);
    const more = readFeed(service, `?after=${cursor}&wait=25`);
    expect(await statuses[0]).toBe(200);
    await untilWaiting(MAX_WAITING_REQUESTS);
    expect((await fetch(`${service.managementUrl}/health/live`)).status).toBe(200);
    const sid = await endNewToken(service);
    expect((await more).body.revocations).toMatchObject([{ value: sid }]);
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  });

  it('that waits gets its response when the process stops', async () => {
    const other = await startTestService({ registry });
    const consumer = new FeedConsumer([other]);
    await consumer.catchUp();
    const reading = consumer.read(25);
    await expect
      .poll(() => Reflect.get(other.application.get(RevocationReader, { strict: false }), 'ends').size)
      .toBe(1);
    const stopped = other.stop();
    expect(await reading).toMatchObject({ revocations: [], complete: false });
    await stopped;
  });
});
