import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { createTestDatabase, onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { loadConfiguration } from '../../../src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../../src/platform/database/data-source-options.js';
import { Database } from '../../../src/platform/database/database.js';
import { connectWithRetry } from '../../../src/platform/database/database-start.js';
import { migrate } from '../../../src/platform/database/migrate.js';
import { selectStatement } from '../../../src/platform/database/statement.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { emptyDatabaseOfTest, useDatabase } from '../../support/databases.js';
import { endSessions } from '../../support/end-sessions.js';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { purge } from '../../support/operator-commands.js';
import { environmentOf } from '../../support/processes.js';
import { rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { FEED_SERVERS, FeedConsumer } from '../../support/revocation-feed.js';
import { ACME, ACME_SITE } from '../../support/test-registry.js';
import { newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const SYNTAX_ERRNO = 1064;
/** The error of a server that is not MySQL, MariaDB or TiDB. */
const UNKNOWN_VARIABLE = { errno: 20101, message: 'internal error: the system variable does not exist' } as const;
const BROWSER_LIFETIME_SECONDS = 740 * 86_400;
/** A double has fewer digits as text. */
const MANY_DIGITS_COUNT = 1_796_000_000_000_123;
const FIND_TEXT = selectStatement<[number: number], { text: string }>("SELECT CONCAT(?, '') AS text");

describe.runIf(onMariadb)('a database that differs from MySQL and MariaDB', () => {
  const database = useDatabase(createTestDatabase);
  let proxy: LossyProxy;
  afterAll(() => proxy?.close());
  const service = useService(async () => {
    proxy = await startLossyProxy(database.url);
    const registry = { ...rememberingRegistry(), resource_servers: FEED_SERVERS };
    return { database, registry, environment: { DATABASE_URL: proxy.through(database.url) } };
  });
  const sent = new Set<string>();
  afterEach(failNothing);

  /** Records the statements from now on. */
  function failNothing(): void {
    sent.clear();
    proxy.failStatements({ errno: 0, outcome: 'lost' }, (sql) => !sent.add(sql));
  }

  /** Connects as a process does at its start. */
  const connect = (url = database.url) => {
    const configuration = loadConfiguration({ ...environmentOf(database), DATABASE_URL: proxy.through(url) });
    return connectWithRetry(dataSourceOptions(configuration), 0);
  };

  it('gets no condition as a column, which it could return as text', async () => {
    failNothing();
    const made = await service.post(TOKEN, cookieBody());
    const { access_token } = made.body;
    const cookie = await rememberedPair(service, access_token, cookieHeader(made));
    await service.post(TOKEN, cookieBody(), { cookie });
    await service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie });
    await endSessions(service, access_token, {}, { cookie });
    await service.send('DELETE', TOKEN, bearer((await newCustomer(service)).access_token));
    service.clock.advance({ seconds: BROWSER_LIFETIME_SECONDS });
    await purge(service);
    const columns = [...sent].flatMap(columnsWithAlias);
    expect(columns.filter((column) => /^CASE\b/.test(column)).length).toBeGreaterThanOrEqual(3);
    expect(columns.filter(isCondition)).toEqual([]);
  });

  it('gets integers as integers', async () => {
    const [row] = await service.application.get(Database).select(FIND_TEXT, [MANY_DIGITS_COUNT]);
    expect(row?.text).toBe(String(MANY_DIGITS_COUNT));
  });

  it('gets character sets and collations without quotes in the schema', async () => {
    const dataSource = await connect((await emptyDatabaseOfTest()).url);
    failNothing();
    await migrate(dataSource);
    await dataSource.destroy();
    const tables = [...sent].filter((sql) => sql.startsWith('CREATE TABLE'));
    expect(tables.filter((sql) => /CHARACTER SET utf8mb4 COLLATE utf8mb4_bin/.test(sql)).length).toBeGreaterThan(10);
    expect(tables.filter((sql) => sql.includes('"'))).toEqual([]);
  });

  it('publishes revocations without SKIP LOCKED', async () => {
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    proxy.failStatements({ errno: SYNTAX_ERRNO, outcome: 'lost' }, (sql) => sql.includes('SKIP LOCKED'));
    const { access_token } = await newCustomer(service);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    await consumer.find({ value: claimsOf(access_token).sid as string });
  });

  it.each([
    'group_replication_consistency',
    'wsrep_sync_wait',
    'idle_write_transaction_timeout',
    'innodb_lock_wait_timeout',
  ])('may not know the variable %s, and may have an error number of its own for it', async (variable) => {
    proxy.failStatements({ ...UNKNOWN_VARIABLE, outcome: 'lost' }, (sql) => sql.startsWith(`SET SESSION ${variable} `));
    const dataSource = await connect();
    expect(await dataSource.query('SELECT @@SESSION.time_zone AS zone')).toEqual([{ zone: '+00:00' }]);
    await dataSource.destroy();
  });

  it.each(['sql_mode', 'wsrep_sync_wait', 'time_zone', 'character_set_client'])(
    'is unavailable, with the setting in the error, if it rejects %s',
    async (variable) => {
      const error = { errno: 1231, message: "variable can't be set to the value", outcome: 'lost' } as const;
      proxy.failStatements(error, (sql) => sql.startsWith(`SET SESSION ${variable} `));
      await expect(connect()).rejects.toThrow(`SET SESSION ${variable} = `);
    },
  );
});

/** The columns of SELECTs that have a name of their own, without the name. */
function columnsWithAlias(sql: string): string[] {
  const columns: string[] = [];
  for (const { index } of sql.matchAll(/ AS \w+(?=,| FROM|$|\s+FROM|\))/g)) columns.push(columnBefore(sql, index));
  return columns;
}

/** The text back to the comma or SELECT at the same depth of parentheses. */
function columnBefore(sql: string, end: number): string {
  let depth = 0;
  for (let at = end - 1; at >= 0; at--) {
    if (sql[at] === ')') depth++;
    if (sql[at] === '(' && --depth < 0) return sql.slice(at + 1, end).trim();
    if (depth === 0 && (sql[at] === ',' || sql.startsWith('SELECT ', at)))
      return sql
        .slice(at, end)
        .replace(/^(,|SELECT )\s*(DISTINCT )?/, '')
        .trim();
  }
  return sql.slice(0, end);
}

/** Whether a column is a condition outside of CASE and of subqueries. */
function isCondition(column: string): boolean {
  if (/^CASE\b/.test(column)) return false;
  let outside = column;
  const innermost = /(\w*)\(([^()]*)\)/;
  while (innermost.test(outside))
    outside = outside.replace(innermost, (_, name, content) => {
      if (content.startsWith('SELECT ')) return `${name} row`;
      return name === '' ? ` ${content} ` : name;
    });
  return /[<>=]|\b(EXISTS|NOT|OR|AND|IS|IN)\b/.test(outside);
}
