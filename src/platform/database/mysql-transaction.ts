import type { PoolConnection } from 'mysql2';
import type { DataSource, EntityManager } from 'typeorm';
import type { BoundWrite } from './bound-write.js';
import { isRolledBack, isUnavailable } from './database-errors.js';
import { MYSQL_DIALECT } from './sql-dialect.js';
import { withTimeout } from './statement-timeout.js';

/**
 * How long the server waits for the next statement of a transaction. If the host of the process is lost without closing
 * its connections, the server would otherwise hold the locks of the transaction for 8 hours.
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
 * @param timeoutMs limit of the wait for a connection and of the work together
 */
export async function runTransaction<Result>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<Result>,
  timeoutMs: number,
): Promise<Result> {
  const runner = dataSource.createQueryRunner();
  let connection: PoolConnection | undefined;
  let isOver = false;
  const transaction = async () => {
    const acquired: PoolConnection = await runner.connect();
    if (isOver) return acquired.release() as never; // the caller has got its error
    connection = acquired;
    return limitIdleTime(acquired, async () => {
      await runner.startTransaction();
      try {
        const result = await work(runner.manager);
        await runner.commitTransaction();
        return result;
      } catch (error) {
        if (!isUnavailable(error) || isRolledBack(error)) await runner.rollbackTransaction();
        throw error;
      }
    });
  };
  try {
    return await withTimeout(transaction(), timeoutMs);
  } catch (error) {
    if (isUnavailable(error) && !isRolledBack(error)) connection?.destroy();
    throw error;
  } finally {
    isOver = true;
    await runner.release(); // the work may still run, but it can send no further statement
  }
}

/**
 * Sends writes as one transaction of a connection. After an error of the database itself, the caller destroys the
 * connection, which rolls the transaction back.
 */
export function sendTransaction(connection: PoolConnection, writes: BoundWrite[]): Promise<unknown[]> {
  return limitIdleTime(connection, async () => {
    try {
      const results: unknown[] = [];
      await send(connection, 'START TRANSACTION');
      for (const { statement, parameters } of writes) {
        const sql = statement.text(MYSQL_DIALECT);
        results.push(await result((done) => connection.execute(sql, parameters, done)));
      }
      await send(connection, 'COMMIT');
      return results;
    } catch (error) {
      if (!isUnavailable(error)) await send(connection, 'ROLLBACK');
      throw error;
    }
  });
}

/** Runs a transaction with a limit of the time between its statements. */
async function limitIdleTime<Result>(connection: PoolConnection, transaction: () => Promise<Result>): Promise<Result> {
  if (withIdleLimit.has(connection)) return transaction();
  await send(connection, `SET SESSION wait_timeout = ${IDLE_TIMEOUT_SECONDS}`);
  try {
    return await transaction();
  } finally {
    // not awaited: the connection sends it before the statements of its next user, whose idle time has no such limit
    connection.query('SET SESSION wait_timeout = DEFAULT', () => undefined);
  }
}

const send = (connection: PoolConnection, sql: string) => result((done) => connection.query(sql, done));

function result(work: (done: (error: Error | null, result: unknown) => void) => void): Promise<unknown> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error) : resolve(value)));
  });
}
