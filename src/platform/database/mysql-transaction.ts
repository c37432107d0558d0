import type { PoolConnection } from 'mysql2';
import type { BoundWrite } from './bound-write.js';
import { isUnavailable } from './database-errors.js';
import { MYSQL_DIALECT } from './sql-dialect.js';

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
 * Sends writes as one transaction of a connection. After an error of the database itself, the caller destroys the
 * connection, which rolls the transaction back.
 */
export async function sendTransaction(connection: PoolConnection, writes: BoundWrite[]): Promise<unknown[]> {
  const results: unknown[] = [];
  const needsLimit = !withIdleLimit.has(connection);
  if (needsLimit) await send(connection, `SET SESSION wait_timeout = ${IDLE_TIMEOUT_SECONDS}`);
  try {
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
  } finally {
    // not awaited: the connection sends it before the statements of its next user, whose idle time has no such limit
    if (needsLimit) connection.query('SET SESSION wait_timeout = DEFAULT', () => undefined);
  }
}

const send = (connection: PoolConnection, sql: string) => result((done) => connection.query(sql, done));

function result(work: (done: (error: Error | null, result: unknown) => void) => void): Promise<unknown> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error) : resolve(value)));
  });
}
