import mysql, { type PoolConnection, type TypedParameterValue } from 'mysql2';
import type { DataSource, EntityManager } from 'typeorm';
import { breaksConnection, STATEMENT_TIMEOUT_MS, withTimeout } from './database-errors.js';
import { transactionRunner } from './in-transaction.js';
import { MYSQL_DIALECT, type SqlValue } from './sql-dialect.js';
import type { BoundWrite } from './statement.js';

/** Without this limit, the server would hold the locks of a lost host's transaction for 8 hours. */
const IDLE_TIMEOUT_SECONDS = 10;

/** Connections with `idle_write_transaction_timeout` of MariaDB. Their transactions need no limit of their own. */
const withIdleLimit = new WeakSet<object>();

export function rememberIdleLimit(connection: PoolConnection): void {
  withIdleLimit.add(connection);
}

/** The time before the deadline that remains to read whether a COMMIT without a response has taken effect. */
const CHECK_TIME_MS = 500;

/**
 * A connection whose transaction did not end cleanly is destroyed, which rolls the transaction back. `timeoutMs` limits
 * the wait for a connection and the work. COMMIT has at least 1 s, because its outcome is unknown after a time-out.
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
    const commitMs = Math.max(until - performance.now() - CHECK_TIME_MS, STATEMENT_TIMEOUT_MS);
    await withTimeout(shared.commitTransaction(), commitMs);
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

/** After an error that breaks the connection, the caller destroys it, which rolls the transaction back. */
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

async function limitIdleTime(connection: PoolConnection): Promise<void> {
  if (!withIdleLimit.has(connection)) await send(connection, `SET SESSION wait_timeout = ${IDLE_TIMEOUT_SECONDS}`);
}

/** Not awaited: the connection sends it before the statements of its next user, whose idle time has no such limit. */
function removeIdleLimit(connection: PoolConnection): void {
  if (!withIdleLimit.has(connection)) connection.query('SET SESSION wait_timeout = DEFAULT', () => undefined);
}

const send = (connection: PoolConnection, sql: string) => result((done) => connection.query(sql, done));

export function result<Value>(work: (done: (error: Error | null, value: Value) => void) => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error) : resolve(value)));
  });
}

/** Parameters of a prepared statement. mysql2 would send integers as doubles, which some servers reject or round. */
export function asSent(parameters: SqlValue[]): (SqlValue | TypedParameterValue)[] {
  return parameters.map((value) => (Number.isInteger(value) ? mysql.TypedParameter.LONGLONG(value as number) : value));
}
