import type { EntityManager, QueryResult, QueryRunner } from 'typeorm';
import { dialectOf, SQLITE_DIALECT, type SqlValue } from './sql-dialect.js';
import { asStored, withNamedTimes } from './sqlite-statements.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';

/** The query runner of one transaction, whose work may send statements without awaiting them. */
export function transactionRunner(shared: QueryRunner) {
  const underWay = new Set<Promise<unknown>>();
  let hasEnded = false;
  const query = (...parameters: Parameters<QueryRunner['query']>): Promise<unknown> => {
    if (hasEnded) return Promise.reject(new Error('the transaction has ended'));
    const sent: Promise<unknown> = shared.query(...parameters);
    underWay.add(sent);
    const forget = () => void underWay.delete(sent);
    sent.then(forget, forget);
    return sent;
  };
  const properties = { query: { value: query }, isTransactionActive: { value: true } };
  return {
    runner: Object.create(shared, properties) as QueryRunner,
    /** From now on, no statement begins. Resolves when those under way have ended. */
    async end(): Promise<void> {
      hasEnded = true;
      await Promise.allSettled(underWay);
    },
  };
}

export async function selectIn<Parameters extends SqlValue[], Row>(
  manager: EntityManager,
  statement: SelectStatement<Parameters, Row>,
  parameters: NoInfer<Parameters>,
): Promise<Row[]> {
  const { records } = await send(manager, statement, parameters);
  const isSqlite = dialectOf(manager.dataSource) === SQLITE_DIALECT;
  return (isSqlite ? withNamedTimes(records as Record<string, unknown>[]) : records) as Row[];
}

/** Resolves to the number of matched rows. */
export async function writeIn<Parameters extends SqlValue[]>(
  manager: EntityManager,
  statement: WriteStatement<Parameters> | InsertStatement<Parameters>,
  parameters: NoInfer<Parameters>,
): Promise<number> {
  return (await send(manager, statement, parameters)).affected ?? 0;
}

async function send(manager: EntityManager, statement: Statement, parameters: SqlValue[]): Promise<QueryResult> {
  const { queryRunner } = manager;
  if (!queryRunner) throw new Error('not in a transaction');
  const dialect = dialectOf(manager.dataSource);
  const values = dialect === SQLITE_DIALECT ? parameters.map(asStored) : parameters;
  return queryRunner.query(statement.text(dialect), values, true);
}
