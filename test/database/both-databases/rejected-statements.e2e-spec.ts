import { DataSource, type EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { Database } from '../../../src/platform/database/database.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { useDatabase } from '../../support/databases.js';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { type PrivateDatabase, startPrivateDatabase } from '../../support/private-database.js';
import { redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

/** More requests than the pool has connections. */
const REQUEST_COUNT = 30;

describe.runIf(onMariadb)('while the database server rejects statements, a request gets 503', () => {
  let database: PrivateDatabase;
  afterAll(() => database?.remove());
  const service = useService(async () => {
    database = await startPrivateDatabase();
    return { database };
  });

  const newCustomers = async (count = REQUEST_COUNT) => {
    const responses = await Promise.all(Array.from({ length: count }, () => service.post(TOKEN, cookieBody())));
    return [...new Set(responses.map(({ status }) => status))].sort();
  };
  const readiness = async () => (await fetch(`${service.managementUrl}/health/ready`)).status;

  async function expectRecovery(): Promise<void> {
    await expect.poll(() => newCustomers()).toEqual([200]);
    expect(await newCustomers()).toEqual([200]);
    expect(await readiness()).toBe(200);
  }

  it.each([
    ['all sessions are read-only', 'SET GLOBAL tx_read_only = 1', 'SET GLOBAL tx_read_only = 0'],
    ['the server is read-only', 'SET GLOBAL read_only = 1', 'SET GLOBAL read_only = 0'],
    [
      'the account may change nothing',
      "REVOKE INSERT, UPDATE, DELETE ON service.* FROM 'service'@'%'",
      "GRANT INSERT, UPDATE, DELETE ON service.* TO 'service'@'%'",
    ],
    [
      'the account may have one connection only',
      "GRANT USAGE ON *.* TO 'service'@'%' WITH MAX_USER_CONNECTIONS 1",
      "GRANT USAGE ON *.* TO 'service'@'%' WITH MAX_USER_CONNECTIONS 0",
    ],
    ['the account is locked', "ALTER USER 'service'@'%' ACCOUNT LOCK", "ALTER USER 'service'@'%' ACCOUNT UNLOCK"],
    ['a statement may take no time', 'SET GLOBAL max_statement_time = 0.000001', 'SET GLOBAL max_statement_time = 0'],
  ])('while %s, and 200 on every connection afterwards', async (_, begin, end) => {
    await database.administer(begin);
    await database.disconnect();
    const statuses = [...(await newCustomers()), ...(await newCustomers())];
    await database.administer(end);
    expect(statuses).toContain(503);
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    await expectRecovery();
  });

  it.each([
    ['its statement', 'KILL QUERY'],
    ['its connection', 'KILL CONNECTION'],
  ])('if an administrator ends %s', async (_, kill) => {
    await database.administer('LOCK TABLES customer WRITE, browser WRITE');
    const waiting = newCustomers(3);
    await expect.poll(() => blocked()).not.toEqual([]);
    for (const { id } of await blocked()) await database.administer(`${kill} ${id}`).catch(() => undefined);
    expect(await waiting).toEqual([503]);
    await database.administer('UNLOCK TABLES');
    await expectRecovery();
  });

  const blocked = () =>
    database.administer("SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'");
});

/** A known and an unknown error of a server that cannot work now, and one of a wrong statement. */
const ERRORS: [errno: number, status: number][] = [
  [1290, 503],
  [65_000, 503],
  [1064, 500],
];

describe.runIf(onMariadb)('a database server that gives a session an error for ever', () => {
  const database = useDatabase(createTestDatabase);
  let proxy: LossyProxy;
  afterAll(() => proxy?.close());
  const service = useService(async () => {
    proxy = await startLossyProxy(database.url);
    return { database, environment: { DATABASE_URL: proxy.through(database.url), DB_POOL_SIZE: '2' } };
  });
  let token: string;
  beforeAll(async () => {
    token = (await service.post(TOKEN, cookieBody())).body.access_token;
  });

  /** The sessions of all statements that match fail from now on, but not those of later connections. */
  async function breakSessions(errno: number, pattern: RegExp, send: () => Promise<{ status: number }>) {
    let breaks = true;
    proxy.failStatements({ errno, outcome: 'broken' }, (sql) => breaks && pattern.test(sql));
    const { status } = await send();
    breaks = false;
    return status;
  }

  const newCustomer = () => service.post(TOKEN, cookieBody());

  it.each(ERRORS)(
    'loses the connection that got error %i, and the response has the status %i',
    async (errno, expected) => {
      const code = await transferToken(service, token);
      expect(await breakSessions(errno, /INTO `?customer\b/, newCustomer)).toBe(expected);
      expect(await breakSessions(errno, /^UPDATE session/, () => redeem(service, code))).toBe(expected);
      for (let count = 0; count < 5; count++) expect((await newCustomer()).status).toBe(200);
      expect((await redeem(service, await transferToken(service, token))).status).toBe(200);
    },
  );
});

/** Works with the entity manager of a connection. */
type Work = (manager: EntityManager) => Promise<number>;

describe.runIf(onMariadb)('after an error that its caller handles, a connection', () => {
  const service = useService();
  const RUNS: Record<string, (work: Work) => Promise<number>> = {
    'of a transaction': (work) => service.application.get(Database).transaction(work),
    'of a query runner': async (work) => {
      const runner = service.application.get(DataSource).driver.createQueryRunner('master');
      return work(service.application.get(DataSource).createEntityManager(runner)).finally(() => runner.release());
    },
  };
  const INSERT = "INSERT INTO lease (name, owner, acquired_at) VALUES ('connection', '', CURRENT_TIMESTAMP)";
  const isOpen = async (id: number) => {
    const sql = 'SELECT 1 FROM information_schema.processlist WHERE id = ?';
    return (await service.application.get(DataSource).query(sql, [id])).length > 0;
  };

  it.each(
    Object.keys(RUNS).flatMap((name) => [
      { name, sql: INSERT, isKept: true, what: 'goes back to the pool if the key existed' },
      { name, sql: 'SELECT * FROM missing', isKept: false, what: 'is closed if the table does not exist' },
      { name, sql: 'SET TRANSACTION READ', isKept: false, what: 'is closed if the statement is wrong' },
    ]),
  )('$name $what', async ({ name, sql, isKept }) => {
    const id = await (RUNS[name] as (work: Work) => Promise<number>)(async (manager) => {
      await manager.query(INSERT).catch(() => undefined);
      await manager.query(sql).catch(() => undefined);
      return (await manager.query('SELECT CONNECTION_ID() AS id'))[0].id;
    });
    if (isKept) expect(await isOpen(id)).toBe(true);
    else await expect.poll(() => isOpen(id)).toBe(false);
  });
});
