import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { startMariadb } from '../../../scripts/mariadb.js';
import { findMariadb } from '../../../scripts/programs.js';
import { Ended } from '../../../src/feed/ended.entity.js';
import { CustomerService } from '../../../src/identity/customer.service.js';
import { Database } from '../../../src/platform/database/database.js';
import { poolOf } from '../../../src/platform/database/mysql-pool.js';
import type { SqlValue } from '../../../src/platform/database/sql-dialect.js';
import { insertStatement, type Statement, selectStatement } from '../../../src/platform/database/statement.js';
import { requestContext } from '../../../src/platform/request-context/request-context.js';
import { Browsers } from '../../../src/session/browsers.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { MigratedSchema } from '../../support/migrated-schema.js';
import { rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { expectKeysOnly } from '../../support/statement-plans.js';
import { clientOf } from '../../support/statements.js';
import { ACME } from '../../support/test-registry.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

/** An integer of the type BIGINT and one of the type DECIMAL, on MySQL and MariaDB. */
const FIND_NUMBERS = selectStatement<[], { counted: number; summed: number }>(
  'SELECT COUNT(*) AS counted, SUM(1) AS summed FROM organization',
);

const FIND_TIMES = selectStatement<[id: string], { created: Date; last_created_at: Date; erased_at: Date | null }>(
  `SELECT found.created_at AS created, found.erased_at,
  (SELECT MAX(created_at) FROM customer WHERE entity_id = found.entity_id) AS last_created_at
  FROM (SELECT * FROM customer WHERE entity_id = ?) AS found`,
);

const PARALLEL_REQUEST_COUNT = 20;

const service = useService({ registry: rememberingRegistry() });

const browsers = () => Array.from({ length: PARALLEL_REQUEST_COUNT }, () => new TestBrowser(service));
const visit = (all: TestBrowser[]) => Promise.all(all.map((browser) => browser.visit()));

describe('parallel requests', () => {
  it('create one customer each, which exists as soon as its response is sent', async () => {
    const all = browsers();
    const responses = await visit(all);
    expect(responses.map(({ status }) => status)).toEqual(Array(PARALLEL_REQUEST_COUNT).fill(200));
    const ids = responses.map(({ body }) => body.entity_id);
    expect(new Set(ids).size).toBe(PARALLEL_REQUEST_COUNT);
    const [thief, owner] = all as [TestBrowser, TestBrowser];
    thief.cookie = `${thief.cookie?.split('; ')[0]}; ${owner.cookie?.split('; ')[1]}`; // another customer’s secret
    const [ofThief, ...again] = (await visit(all)).map(({ body }) => body.entity_id);
    expect(again).toEqual(ids.slice(1));
    expect(ids).not.toContain(ofThief);
  });

  it.runIf(onMariadb)('cause fewer database round trips than there are requests', async () => {
    const all = browsers();
    await visit(all);
    const acquire = vi.spyOn(poolOf(service.application.get(DataSource)), 'acquire');
    for (let round = 0; round < 5; round++) await visit(all);
    expect(acquire.mock.calls.length).toBeLessThan(5 * PARALLEL_REQUEST_COUNT * 0.75);
    acquire.mockRestore();
  });

  it.runIf(onMariadb)(
    'get customers in one transaction, and each waits for it until its own deadline only',
    async () => {
      const rows = service.application.get(Browsers);
      const insert = rows.insertVisitor.bind(rows);
      const all = [new TestBrowser(service), new TestBrowser(service)];
      const arrived: (() => void)[] = [];
      vi.spyOn(rows, 'insertVisitor').mockImplementation(async (visitor) => {
        await new Promise<void>((resolve) => {
          arrived.push(resolve);
          if (arrived.length === 1) requestContext.required().deadline = performance.now() + 500;
          if (arrived.length === all.length) for (const resume of arrived) resume();
        });
        return insert(visitor);
      });
      const client = clientOf(service) as unknown as {
        writeAll(statement: Statement, uses: () => SqlValue[][], waitMs: number): Promise<number>;
      };
      const writeAll = client.writeAll.bind(client);
      const sent: SqlValue[][][] = [];
      vi.spyOn(client, 'writeAll').mockImplementation(async (statement, uses, waitMs) => {
        sent.push(uses());
        const written = await writeAll(statement, uses, waitMs);
        await sleep(600);
        return written;
      });
      const responses = await visit(all);
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 503]);
      expect(sent[0]).toHaveLength(all.length); // a server that is busy may roll the transaction back, and it is repeated
      vi.restoreAllMocks();
    },
  );

  it('fail one by one: a row that cannot be inserted fails alone', async () => {
    const database = service.application.get(Database);
    const columns = ['kind', 'value', 'reason', 'issued_before', 'expires_at'] as const;
    const statement = insertStatement({ into: Ended, columns, batch: true });
    const insert = (id: string | null) =>
      database.insert(statement, ['token', id as string, 'revoked', new Date(), new Date()]);
    const settled = await Promise.allSettled([insert('one'), insert(null), insert('three')]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const select = selectStatement<[], unknown>("SELECT value FROM ended WHERE value IN ('one', 'three')");
    const rows = await database.select(select, []);
    expect(rows).toHaveLength(2);
  });
});

it.runIf(onMariadb)(
  'protocol §5.3: a returning customer is read by keys only, also in a batch and by a transfer',
  async () => {
    const browser = new TestBrowser(service);
    const { access_token } = (await browser.visit()).body;
    const device = new TestBrowser(service);
    device.cookie = await rememberedPair(service, access_token);
    await expectKeysOnly(service, browser);
    await expectKeysOnly(service, device);
  },
);

describe('the database', () => {
  it('returns integer expressions as numbers with each column type that a server gives them', async () => {
    const [row] = await service.application.get(Database).select(FIND_NUMBERS, []);
    expect([typeof row?.counted, typeof row?.summed]).toEqual(['number', 'number']);
    expect(row?.counted).toBeGreaterThan(0);
  });

  it.each(['UTC', 'America/New_York', 'Asia/Kolkata'])('returns the same times in the time zone %s', async (zone) => {
    vi.stubEnv('TZ', zone);
    try {
      expect(new Date(0).getTimezoneOffset() === 0).toBe(zone === 'UTC');
      const now = service.clock.now();
      const { entityId } = await service.application.get(CustomerService).create(ACME);
      const [row] = await service.application.get(Database).select(FIND_TIMES, [entityId]);
      expect(row).toEqual({ created: expect.any(Date), last_created_at: row?.created, erased_at: null });
      expect(Math.abs(Number(row?.created.getTime()) - now)).toBeLessThan(600_000);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

it.runIf(onMariadb && findMariadb())(
  'a server with the sql_mode NO_BACKSLASH_ESCAPES stores values with quotes and backslashes as they are',
  async () => {
    const server = await startMariadb({ extra: ['--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES'] });
    onTestFinished(() => server.stop());
    const url = await server.createDatabase('escapes');
    await new MigratedSchema().createIn(url);
    const database = { url, folder: server.dir, remove: () => server.stop() };
    const escaping = await serviceOfTest({ database });
    const agent = { email: 'o@example.org', password: 'a password of the agent', organization_id: ACME, scopes: [] };
    const { id } = (await escaping.admin('POST', '/admin/agents', { ...agent, name: "user's name \\" })).body;
    expect((await escaping.admin('GET', `/admin/agents/${id}`)).body).toMatchObject({ name: "user's name \\" });
    for (const name of ["user\\'s name", "', from_file = 1 -- \\", '\\" -- ']) {
      expect((await escaping.admin('PATCH', `/admin/agents/${id}`, { name })).status).toBe(200);
      expect((await escaping.admin('GET', `/admin/agents/${id}`)).body).toMatchObject({ name });
    }
  },
);
