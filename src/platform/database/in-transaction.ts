import type { EntityManager, QueryResult } from 'typeorm';
import type { SqlValue } from './sql-dialect.js';
import { MYSQL_DIALECT, SQLITE_DIALECT, type SqlDialect } from './sql-dialect.js';
import { asStored } from './sqlite-statements.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';

/** Sends a declared SELECT in the transaction of `Database.transaction`. */
export async function selectIn<Parameters extends SqlValue[], Row>(
  manager: EntityManager,
  statement: SelectStatement<Parameters, Row>,
  parameters: NoInfer<Parameters>,
): Promise<Row[]> {
  return (await send(manager, statement, parameters)).records as Row[];
}

/**
 * Sends a declared INSERT, UPDATE or DELETE in the transaction of `Database.transaction`.
 *
 * @returns the number of rows that the statement matched
 */
export async function writeIn<Parameters extends SqlValue[]>(
  manager: EntityManager,
  statement: WriteStatement<Parameters> | InsertStatement<Parameters>,
  parameters: NoInfer<Parameters>,
): Promise<number> {
  return (await send(manager, statement, parameters)).affected ?? 0;
}

/** Sends a declared INSERT of several rows in the transaction of `Database.transaction`. */
export async function insertRowsIn<Parameters extends SqlValue[]>(
  manager: EntityManager,
  statement: InsertStatement<Parameters>,
  rows: NoInfer<Parameters>[],
): Promise<void> {
  for (let at = 0; at < rows.length; at += MAX_ROWS_PER_INSERT) {
    const some = rows.slice(at, at + MAX_ROWS_PER_INSERT);
    await send(manager, statement, some.flat(), some.length);
  }
}

const MAX_ROWS_PER_INSERT = 100;

async function send(
  manager: EntityManager,
  statement: Statement,
  parameters: SqlValue[],
  size = 1,
): Promise<QueryResult> {
  const { queryRunner } = manager;
  if (!queryRunner) throw new Error('not in a transaction');
  const isSqlite = manager.dataSource.options.type === 'better-sqlite3';
  const dialect: SqlDialect = isSqlite ? SQLITE_DIALECT : MYSQL_DIALECT;
  return queryRunner.query(statement.text(dialect, size), isSqlite ? parameters.map(asStored) : parameters, true);
}
