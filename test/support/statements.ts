import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { expect, vi } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import type { SqlClient } from '../../src/platform/database/sql-client.js';
import type { SqlValue } from '../../src/platform/database/sql-dialect.js';
import { InsertStatement, type Statement } from '../../src/platform/database/statement.js';
import type { TestService } from './test-service.js';

/** The private method through which `Database` sends every statement. */
export interface Sender {
  sendWithRetries(sql: string, send: () => Promise<unknown>): Promise<unknown>;
}

/** The client between a service and its database's driver. */
export function clientOf({ application }: TestService): SqlClient {
  return Reflect.get(application.get(Database), 'client');
}

/** SQLite responds at once. The delay lets all requests read before the first one writes. */
export function delaySelects(service: TestService): void {
  const client = clientOf(service);
  const select = client.select.bind(client);
  vi.spyOn(client, 'select').mockImplementation(async (statement, parameters) => {
    const rows = await select(statement, parameters);
    await sleep(20);
    return rows;
  });
}

/** The text of a declared statement in the dialect of this database. */
export function sqlOf(database: Database, statement: Statement): string {
  const { dialect }: SqlClient = Reflect.get(database, 'client');
  return statement.text(dialect);
}

/** The INSERT into each table, or the one text of any other statement. */
function textsOf(database: Database, statement: Statement, parameters: SqlValue[]): string[] {
  const writes = statement instanceof InsertStatement ? statement.writes([parameters]) : [{ statement }];
  return writes.map((write) => sqlOf(database, write.statement));
}

/** The statements that the service sends for a request, through any client of the database. */
export async function statementTextsOf(service: TestService, send: () => Promise<unknown>): Promise<string[]> {
  const database = service.application.get(Database);
  const client = clientOf(service);
  const spies = [vi.spyOn(client, 'select'), vi.spyOn(client, 'write')];
  const queries = vi.spyOn(client, 'query');
  const logger = vi.spyOn(service.application.get(DataSource).logger, 'logQuery');
  const attempts = vi.spyOn(database as unknown as Sender, 'sendWithRetries');
  await send();
  const calls = spies.flatMap(({ mock }) =>
    mock.calls.map(([statement, parameters], index) => ({
      texts: textsOf(database, statement as Statement, parameters),
      order: mock.invocationCallOrder[index] ?? 0,
    })),
  );
  const declared = calls.filter(({ texts }) => texts.some(isForeground));
  const sent = attempts.mock.calls.filter(([sql]) => isForeground(sql) && sql !== 'BEGIN … COMMIT');
  const sentByTypeorm = queries.mock.calls.filter(([sql]) => isForeground(sql));
  expect(sent).toHaveLength(declared.length + sentByTypeorm.length);
  const logged = logger.mock.calls.map(([sql], index) => ({
    texts: [sql],
    order: logger.mock.invocationCallOrder[index] ?? 0,
  }));
  const inOrder = [...declared, ...logged].sort((one, other) => one.order - other.order);
  for (const spy of [...spies, queries, logger, attempts]) spy.mockRestore();
  return inOrder
    .flatMap(({ texts }) => texts)
    .filter((sql) => isForeground(sql) && !TRANSACTION.test(sql))
    .map((sql) => sql.trim());
}

const isForeground = (sql: string) => !BACKGROUND_STATEMENT.test(sql);

/** The kinds of the statements that the service sends for a request: SELECT, INSERT, UPDATE. */
export async function statementsOf(service: TestService, send: () => Promise<unknown>): Promise<string[]> {
  return (await statementTextsOf(service, send)).map((sql) => sql.split(/\s/)[0] as string);
}

const TRANSACTION = /^(BEGIN|START|COMMIT|SET)\b/;
/** Statements that the service sends regularly: for changes of the registry, and to publish revocations and events. */
const BACKGROUND_STATEMENT =
  /registry_revision|revocation_feed|kind, value, position|published_until (>|IS NULL)|position IS NULL/;
