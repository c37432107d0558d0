import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  createEmptyDatabase,
  createTestDatabase,
  onMariadb,
} from '../../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../../scripts/free-port.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { connectTo } from '../../support/database-connection.js';
import { useDatabase } from '../../support/databases.js';
import { expectUnavailable } from '../../support/expect-error.js';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { request, startTestService } from '../../support/test-service.js';

/** Processes that start at the same time in the test of outages. */
const PARALLEL_START_COUNT = 4;
const WRITE = /^\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|TRUNCATE)/i;

describe.runIf(onMariadb)('the start of a process', () => {
  const database = useDatabase(createTestDatabase);
  let proxy: LossyProxy;
  beforeAll(async () => {
    proxy = await startLossyProxy(database.url);
    await (await start()).stop();
  });
  afterAll(() => proxy?.close());

  const start = (through = proxy) =>
    startTestService({ database, environment: { DATABASE_URL: through.through(database.url) } });

  it('writes nothing if nothing has changed since the last start, and checks that it could write', async () => {
    const sent: string[] = [];
    proxy.failStatements({ errno: 1290, outcome: 'lost' }, (sql) => void sent.push(sql) as never);
    await (await start()).stop();
    expect(sent.filter((sql) => WRITE.test(sql))).toEqual(["UPDATE lease SET owner = owner WHERE name = ''"]);
  });

  it('goes on after an outage that begins at any of its statements', async () => {
    const failedTexts = new Set<string>();
    /**
     * Starts processes, each of which fails at a statement at which none has failed, until there is no such statement.
     */
    async function startUntilAllHaveFailed(): Promise<void> {
      const own = await startLossyProxy(database.url);
      onTestFinished(() => own.close());
      for (let hasFailed = true; hasFailed; ) {
        hasFailed = false;
        own.failStatements({ errno: 1290, outcome: 'broken' }, (sql) => {
          if (hasFailed || failedTexts.has(sql)) return false;
          failedTexts.add(sql);
          hasFailed = true;
          return true;
        });
        const service = await start(own);
        own.failStatements({ errno: 1290, outcome: 'broken' }, () => false);
        await expect.poll(async () => (await service.post(TOKEN, cookieBody())).status).toBe(200);
        await service.stop();
      }
    }
    // together, because a process waits for a second before it goes on
    await Promise.all(Array.from({ length: PARALLEL_START_COUNT }, startUntilAllHaveFailed));
    expect(failedTexts.size).toBeGreaterThan(10);
  });
});

it.runIf(onMariadb)(
  'protocol §2.2: a process that starts while the database is unreachable is live but not ready and has no public port, and serves once the database is reachable',
  async () => {
    const database = await createEmptyDatabase();
    const proxy = await startTcpProxy(database.url);
    await proxy.cut();
    const MANAGEMENT_PORT = String(await freePort());
    const PORT = String(await freePort());
    const starting = startTestService({
      database,
      environment: { DATABASE_URL: proxy.through(database.url), MANAGEMENT_PORT, PORT },
    });
    const health = (path: string) => request(`http://127.0.0.1:${MANAGEMENT_PORT}/health/${path}`, {});
    try {
      const live = () => health('live').then(({ status }) => status);
      await expect.poll(() => live().catch(() => 'not yet')).toBe(200);
      for (const path of ['ready', 'nowhere']) {
        const response = await health(path);
        expectUnavailable(response);
      }
      expect((await health('live')).headers.get('cache-control')).toBe('no-store');
      await expect(request(`http://127.0.0.1:${PORT}/`, {})).rejects.toThrow();

      await proxy.restore();
      expect((await (await starting).post(TOKEN, cookieBody())).status).toBe(200);
      expect((await health('ready')).status).toBe(200);
    } finally {
      await proxy.restore();
      await (await starting).stop();
      await proxy.close();
      await database.remove();
    }
  },
);

describe.skipIf(onMariadb)('the start of a process on SQLite', () => {
  const database = useDatabase(createTestDatabase);
  let watching: DataSource;
  beforeAll(async () => {
    await (await startTestService({ database })).stop();
    watching = await connectTo(database);
  });
  afterAll(() => watching?.destroy());

  it('writes nothing if nothing has changed since the last start', async () => {
    const version = () => watching.query('PRAGMA data_version');
    const before = await version();
    await (await startTestService({ database })).stop();
    expect(await version()).toEqual(before);
  });
});
