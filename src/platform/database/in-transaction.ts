import type { EntityManager, QueryResult, QueryRunner } from 'typeorm';
import { MYSQL_DIALECT, SQLITE_DIALECT, type SqlDialect, type SqlValue } from './sql-dialect.js';
import { asStored } from './sqlite-statements.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';

/** The query runner of one transaction, whose work may send statements without awaiting them. */
export interface TransactionRunner {
  runner: QueryRunner;
  /** From now on, no statement begins. Resolves when those under way have ended. */
  end(): Promise<void>;
}

/** Derives the query runner of one transaction from a query runner of TypeORM. */
export function transactionRunner(shared: QueryRunner): TransactionRunner {
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
  return {
    runner: Object.create(shared, { query: { value: query }, isTransactionActive: { value: true } }),
    async end() {
      hasEnded = true;
      await Promise.allSettled(underWay);
    },
  };
}

/** Sends a declared SELECT in the transaction of `Database.transaction`. */
export async function selectIn<Parameters extends SqlValue[], Row>(
  manager: EntityManager,
  statement: SelectStatement<Parameters, Row>,
  parameters: NoInfer<Parameters>,
): Promise<Row[]> {
  return (await send(manager, statement, parameters)).records as Row[];
}

/** Sends a declared write in the transaction of `Database.transaction`. Resolves to the number of matched rows. */
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
  const isSqlite = manager.dataSource.options.type === 'better-sqlite3';
  const dialect: SqlDialect = isSqlite ? SQLITE_DIALECT : MYSQL_DIALECT;
  return queryRunner.query(statement.text(dialect), isSqlite ? parameters.map(asStored) : parameters, true);
}
