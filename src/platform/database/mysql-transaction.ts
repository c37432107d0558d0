import mysql, { type PoolConnection, type TypedParameterValue } from 'mysql2';
import type { DataSource, EntityManager } from 'typeorm';
import { breaksConnection, STATEMENT_TIMEOUT_MS, withTimeout } from './database-errors.js';
import { transactionRunner } from './in-transaction.js';
import { MYSQL_DIALECT, type SqlValue } from './sql-dialect.js';
import type { BoundWrite } from './statement.js';

/**
 * How long the server waits for the next statement of a transaction. Without this limit, the server would hold the
 * locks of a transaction for 8 hours if the host of the process is lost without closing its connections.
 */
const IDLE_TIMEOUT_SECONDS = 10;

/** The connections on which the server ends each idle transaction, so that a transaction needs no limit of its own. */
const withIdleLimit = new WeakSet<object>();

/** Remembers that the session has the variable `idle_write_transaction_timeout` of MariaDB. */
export function rememberIdleLimit(connection: PoolConnection): void {
  withIdleLimit.add(connection);
}

/**
 * Runs work as one transaction on a connection of the pool. A connection whose transaction did not end cleanly is
 * destroyed, which rolls the transaction back.
 *
 * @param timeoutMs limit of the wait for a connection and of the work together. COMMIT has at least 1 s, because
 *   its outcome is unknown after a time-out
 */
export async function runTransaction<Result>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<Result>,
  timeoutMs: number,
): Promise<Result> {
  const until = performance.now() + timeoutMs;
  const shared = dataSource.createQueryRunner();
  const { runner, end } = transactionRunner(shared);
  let connection: PoolConnection | undefined;
  let isOver = false;
  const begin = async () => {
    const acquired: PoolConnection = await shared.connect();
    if (isOver) return acquired.release(); // the caller has got its error
    connection = acquired;
    await limitIdleTime(acquired);
    await shared.startTransaction();
  };
  try {
    await withTimeout(begin(), timeoutMs);
    const result = await withTimeout(work(dataSource.createEntityManager(runner)), until - performance.now());
    await withTimeout(end(), until - performance.now());
    await withTimeout(shared.commitTransaction(), Math.max(until - performance.now(), STATEMENT_TIMEOUT_MS));
    return result;
  } catch (error) {
    isOver = true;
    if (breaksConnection(error)) connection?.destroy();
    else await rollBack();
    throw error;
  } finally {
    if (connection) removeIdleLimit(connection);
    await shared.release();
  }

  async function rollBack(): Promise<void> {
    try {
      await withTimeout(end(), STATEMENT_TIMEOUT_MS);
      await withTimeout(shared.rollbackTransaction(), STATEMENT_TIMEOUT_MS);
    } catch {
      connection?.destroy();
    }
  }
}

/**
 * Sends writes as one transaction of a connection. After an error that breaks the connection, the caller destroys it,
 * which rolls the transaction back.
 */
export async function sendTransaction(connection: PoolConnection, writes: BoundWrite[]): Promise<unknown[]> {
  await limitIdleTime(connection);
  try {
    const results: unknown[] = [];
    await send(connection, 'START TRANSACTION');
    for (const { statement, parameters } of writes) {
      const sql = statement.text(MYSQL_DIALECT);
      results.push(await result((done) => connection.execute(sql, asSent(parameters), done)));
    }
    await send(connection, 'COMMIT');
    return results;
  } catch (error) {
    if (!breaksConnection(error)) await send(connection, 'ROLLBACK');
    throw error;
  } finally {
    removeIdleLimit(connection);
  }
}

/** Limits the time between the statements of the following transaction. */
async function limitIdleTime(connection: PoolConnection): Promise<void> {
  if (!withIdleLimit.has(connection)) await send(connection, `SET SESSION wait_timeout = ${IDLE_TIMEOUT_SECONDS}`);
}

/** Not awaited: the connection sends it before the statements of its next user, whose idle time has no such limit. */
function removeIdleLimit(connection: PoolConnection): void {
  if (!withIdleLimit.has(connection)) connection.query('SET SESSION wait_timeout = DEFAULT', () => undefined);
}

const send = (connection: PoolConnection, sql: string) => result((done) => connection.query(sql, done));

/** The result of a function of mysql2 that calls back. */
export function result<Value>(work: (done: (error: Error | null, value: Value) => void) => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error) : resolve(value)));
  });
}

/** Parameters of a prepared statement. mysql2 would send integers as doubles, which some servers reject or round. */
export function asSent(parameters: SqlValue[]): (SqlValue | TypedParameterValue)[] {
  return parameters.map((value) => (Number.isInteger(value) ? mysql.TypedParameter.LONGLONG(value as number) : value));
}
