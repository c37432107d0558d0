import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { Database } from '../../../src/platform/database/database.js';
import { poolOf } from '../../../src/platform/database/mysql-pool.js';
import { selectStatement, writeStatement } from '../../../src/platform/database/statement.js';
import {
  type RequestContext,
  requestContext,
  STATEMENTS_TIMEOUT_MS,
} from '../../../src/platform/request-context/request-context.js';
import { IS_NIGHTLY } from '../../nightly.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidGrant, expectUnavailable } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { startTestService, type TestResponse } from '../../support/test-service.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

/** Seconds for which a table is locked: longer than any request waits. */
const LOCK_SECONDS = IS_NIGHTLY ? 30 : 6;

/** A statement that occupies a connection of the database. */
const sleepFor = (seconds: number) => selectStatement<[], { slept: number }>(`SELECT SLEEP(${seconds}) AS slept`);

/** Blocks the event loop past the statement timeout. Timers then run before responses that arrived meanwhile. */
async function blockEventLoop(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  const end = performance.now() + 1_500;
  while (performance.now() < end);
}

describe.runIf(onMariadb)('a database that cannot run a statement at once', () => {
  const service = useService({ environment: { DB_POOL_SIZE: '4' } });
  let otherConnection: mysql.Connection;
  let customerToken: string;
  beforeAll(async () => {
    customerToken = (await newCustomer(service)).access_token;
    otherConnection = await mysql.createConnection({ uri: service.database.url.replace(/^mariadb:/, 'mysql:') });
    // An engine without transactions: a rollback of the counted statement does not roll back the counter.
    await otherConnection.query('CREATE TABLE refusals (still INT NOT NULL, done INT NOT NULL) ENGINE = MyISAM');
    await otherConnection.query('INSERT INTO refusals VALUES (0, 0)');
  });
  afterEach(async () => {
    await otherConnection.query('UNLOCK TABLES');
    await otherConnection.query('DROP TRIGGER IF EXISTS refusing');
  });
  afterAll(() => otherConnection?.end());

  /** Makes the database fail the next redemptions with an error that reports a rollback. */
  async function failRedemptions(errno: number, times: number): Promise<void> {
    await otherConnection.query('UPDATE refusals SET still = ?, done = 0', [times]);
    await otherConnection.query(`
      CREATE TRIGGER refusing BEFORE UPDATE ON session FOR EACH ROW BEGIN
        IF (SELECT still FROM refusals) > 0 THEN
          UPDATE refusals SET still = still - 1, done = done + 1;
          SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = ${errno};
        END IF;
      END`);
  }

  async function countFailures(): Promise<number> {
    const [rows] = await otherConnection.query<mysql.RowDataPacket[]>('SELECT done FROM refusals');
    return rows[0]?.done;
  }

  async function connectionIds(): Promise<number[]> {
    const [rows] = await otherConnection.query<mysql.RowDataPacket[]>(
      'SELECT id FROM information_schema.processlist WHERE db = DATABASE()',
    );
    return rows.map(({ id }) => id);
  }

  describe.each([
    ['a deadlock', 1213],
    ['a lock wait', 1205],
    ['a certification conflict', 1180],
  ])('%s', (_, errno) => {
    it('is retried during the redemption of a code, and the code gives one token', async () => {
      const code = await transferToken(service, customerToken);
      await failRedemptions(errno, 2);
      const { status, body } = await redeem(service, code);
      expect({ status, refused: await countFailures() }).toEqual({ status: 200, refused: 2 });
      expect(await infoStatus(service, body.access_token)).toBe(200);
      expectInvalidGrant(await redeem(service, code));
    });

    it('that persists causes a 503, and the code and the connections stay usable', async () => {
      const code = await transferToken(service, customerToken);
      const connections = await connectionIds();
      await failRedemptions(errno, 1_000);
      const response = await redeem(service, code);
      expectUnavailable(response);
      expect(await connectionIds()).toEqual(expect.arrayContaining(connections));
      await otherConnection.query('DROP TRIGGER refusing');
      expect((await redeem(service, code)).status).toBe(200);
    });
  });

  it('does not fail a statement whose result arrived while the event loop was blocked', async () => {
    const response = service.application.get(Database).select(sleepFor(0.1), []);
    await sleep(50);
    await blockEventLoop();
    expect(await response).toEqual([{ slept: 0 }]);
  });

  it('does not get a queued statement whose caller has given up waiting', async () => {
    const narrow = await startTestService({ database: service.database, environment: { DB_POOL_SIZE: '2' } });
    const statements = narrow.application.get(Database);
    // opens both connections of the pool, so that the next two statements are sent at once
    await Promise.all([statements.select(sleepFor(0.1), []), statements.execute(writeStatement('DO SLEEP(0.1)'), [])]);
    const first = statements.select(sleepFor(0.6), []);
    const other = statements.execute(writeStatement('DO SLEEP(0.6)'), []);
    await sleep(30);
    const second = statements.execute(writeStatement('UPDATE refusals SET still = ?'), [77]);
    second.catch(() => undefined);
    await blockEventLoop();
    expect(await first).toEqual([{ slept: 0 }]);
    await other;
    await expect(second).rejects.toThrow('did not respond within 1000 ms');
    await narrow.stop();
    const [rows] = await otherConnection.query<mysql.RowDataPacket[]>('SELECT still FROM refusals');
    expect(rows[0]?.still).not.toBe(77);
  });

  it('gets only the remaining time of a request per statement, so that no request waits longer than 3 s', async () => {
    const statements = service.application.get(Database);
    const queryInRequestOfAge = (milliseconds: number, sleepSeconds = 0) =>
      new Promise<unknown[]>((resolve, reject) => {
        const deadline = performance.now() + STATEMENTS_TIMEOUT_MS - milliseconds;
        const context = { deadline } as Partial<RequestContext>;
        const send = () => statements.select(sleepFor(sleepSeconds), []).then(resolve, reject);
        requestContext.run(context as RequestContext, send);
      });
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    await expect(queryInRequestOfAge(1_850, 2)).rejects.toThrow('did not respond within 950 ms');
    const acquire = vi.spyOn(poolOf(service.application.get(DataSource)), 'acquire');
    await expect(queryInRequestOfAge(2_900)).rejects.toThrow('the database is unavailable');
    expect(acquire).not.toHaveBeenCalled();
  });

  it(`with a table locked for ${LOCK_SECONDS} s causes 503 while it is locked, keeps readiness responsive, and recovers`, async () => {
    await otherConnection.query('LOCK TABLES customer WRITE');
    const startedAt = performance.now();
    const statusesOf = async (responses: Promise<TestResponse>[]) =>
      (await Promise.all(responses)).map(({ status }) => status);
    while (performance.now() - startedAt < LOCK_SECONDS * 1_000) {
      const calls = statusesOf(Array.from({ length: 20 }, () => service.post(TOKEN, cookieBody())));
      const health = statusesOf(['live', 'ready'].map((path) => manage(service, 'GET', `/health/${path}`)));
      expect(await calls).toEqual(Array(20).fill(503));
      expect(await health).toEqual([200, 200]);
      await sleep(500);
    }
    await otherConnection.query('UNLOCK TABLES');
    const serves = async () => [
      (await service.post(TOKEN, cookieBody())).status,
      (await manage(service, 'GET', '/health/ready')).status,
    ];
    await expect.poll(serves).toEqual([200, 200]);
  });
});
