import mysql, { type PoolConnection, type ResultSetHeader, type TypedParameterValue } from 'mysql2';
import type { DataSource, EntityManager, QueryResult } from 'typeorm';
import { AbandonedTaskError, BoundedQueue } from '../bounded-queue.js';
import { STATEMENTS_TIMEOUT_MS } from '../request-context/request-context.js';
import {
  DeadlineExceededError,
  isUnavailable,
  leavesSessionIntact,
  STATEMENT_TIMEOUT_MS,
  withTimeout,
} from './database-errors.js';
import { transactionRunner } from './in-transaction.js';
import { hasIdleLimit, type MysqlPool, poolOf } from './mysql-pool.js';
import { type PoolUsage, SqlClient } from './sql-client.js';
import { MYSQL_DIALECT, type SqlValue } from './sql-dialect.js';
import type { BoundWrite, InsertStatement, SelectStatement, WriteStatement } from './statement.js';
import { copyRows, StatementBatcher, splitInserts, splitRows } from './statement-batcher.js';

/** Unlike the time-outs of mysql2's pool, the limit of a statement includes its wait for a connection. */
export class MysqlClient extends SqlClient {
  readonly dialect = MYSQL_DIALECT;
  private rejected = 0;
  private readonly selects = new StatementBatcher<unknown[]>({
    mayPad: true,
    send: (statement, uses) => this.send(statement.text(MYSQL_DIALECT, uses.length), uses.flat()) as Promise<unknown[]>,
    split: splitRows,
    copy: copyRows,
  });
  private readonly writes = new StatementBatcher<number>({
    mayPad: false,
    send: (statement, uses) => this.writeAll(statement.writes(uses)),
    split: splitInserts,
  });

  private readonly pool: MysqlPool;
  private readonly transactions: BoundedQueue;

  constructor(private readonly dataSource: DataSource) {
    super();
    this.pool = poolOf(dataSource);
    const { limit } = this.pool.usage();
    // a transaction may wait for the locks of others; the other half of the pool serves all other requests meanwhile
    this.transactions = new BoundedQueue({ maxRunning: Math.ceil(limit / 2), maxWaiting: Infinity });
  }

  select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]> {
    return this.selects.send(statement, parameters);
  }

  write(statement: InsertStatement | WriteStatement, parameters: SqlValue[]): Promise<number> {
    return this.writes.send(statement, parameters);
  }

  query(sql: string, parameters: unknown[]): Promise<QueryResult> {
    return this.withConnection((connection) => {
      const runner = Object.create(this.dataSource.driver.createQueryRunner('master'), {
        connect: { value: async () => connection },
      });
      return runner.query(sql, parameters, true);
    });
  }

  async transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result> {
    const until = performance.now() + timeoutMs;
    try {
      return await this.transactions.runWithin(timeoutMs, () =>
        runTransaction(this.dataSource, work, until - performance.now()),
      );
    } catch (error) {
      throw error instanceof AbandonedTaskError ? new DeadlineExceededError(timeoutMs) : error;
    }
  }

  override usage(): PoolUsage {
    return { ...this.pool.usage(), rejected: this.rejected };
  }

  private async writeAll(writes: BoundWrite[]): Promise<number> {
    const [first] = writes as [BoundWrite];
    const result =
      writes.length === 1
        ? await this.send(first.statement.text(MYSQL_DIALECT, first.size), first.parameters)
        : await this.sendTransaction(writes);
    return (result as ResultSetHeader).affectedRows;
  }

  /** It does not wait for other transactions. Resolves to the result of the first write. */
  private async sendTransaction(writes: BoundWrite[]): Promise<unknown> {
    const send = (connection: PoolConnection) => sendTransaction(connection, writes);
    const [first] = await this.withConnection(send, STATEMENTS_TIMEOUT_MS);
    return first;
  }

  private send(sql: string, parameters: SqlValue[]): Promise<unknown> {
    return this.withConnection((connection) => result((done) => connection.execute(sql, asSent(parameters), done)));
  }

  private async withConnection<Result>(
    work: (connection: PoolConnection) => Promise<Result>,
    timeoutMs = STATEMENT_TIMEOUT_MS,
  ): Promise<Result> {
    let connection: PoolConnection | undefined;
    let isOver = false;
    const until = performance.now() + timeoutMs;
    const send = async () => {
      const acquired = await result<PoolConnection>((done) => this.pool.getConnection(done));
      // a timer of Node may end before `until`
      if (isOver || performance.now() >= until) {
        acquired.release();
        throw new DeadlineExceededError(timeoutMs);
      }
      connection = acquired;
      return work(acquired);
    };
    try {
      const done = await withTimeout(send(), timeoutMs);
      connection?.release();
      return done as Result;
    } catch (error) {
      isOver = true;
      if ((error as Error).message.startsWith('Queue limit')) this.rejected++;
      // a late response must not reach the next statement
      if (leavesSessionIntact(error)) connection?.release();
      else connection?.destroy();
      throw error;
    }
  }
}

/** Without this limit, the server would hold the locks of a lost host's transaction for 8 hours. */
const IDLE_TIMEOUT_SECONDS = 10;

/**
 * A connection whose transaction did not end cleanly is destroyed, which rolls the transaction back. `timeoutMs` limits
 * the wait for a connection and the work. COMMIT has at least 1 s, because its outcome is unknown after a time-out.
 */
async function runTransaction<Result>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<Result>,
  timeoutMs: number,
): Promise<Result> {
  const until = performance.now() + timeoutMs;
  const shared = dataSource.driver.createQueryRunner('master');
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
    if (isUnavailable(error) && !leavesSessionIntact(error)) connection?.destroy();
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

/** After an error that does not leave the session intact, the caller destroys the connection, which rolls back. */
export async function sendTransaction(connection: PoolConnection, writes: BoundWrite[]): Promise<unknown[]> {
  await limitIdleTime(connection);
  try {
    const results: unknown[] = [];
    await send(connection, 'START TRANSACTION');
    for (const { statement, parameters, size } of writes) {
      const sql = statement.text(MYSQL_DIALECT, size);
      results.push(await result((done) => connection.execute(sql, asSent(parameters), done)));
    }
    await send(connection, 'COMMIT');
    return results;
  } catch (error) {
    if (leavesSessionIntact(error)) await send(connection, 'ROLLBACK');
    throw error;
  } finally {
    removeIdleLimit(connection);
  }
}

async function limitIdleTime(connection: PoolConnection): Promise<void> {
  if (!hasIdleLimit(connection)) await send(connection, `SET SESSION wait_timeout = ${IDLE_TIMEOUT_SECONDS}`);
}

/** Not awaited: the connection sends it before the statements of its next user, whose idle time has no such limit. */
function removeIdleLimit(connection: PoolConnection): void {
  if (!hasIdleLimit(connection)) connection.query('SET SESSION wait_timeout = DEFAULT', () => undefined);
}

const send = (connection: PoolConnection, sql: string) => result((done) => connection.query(sql, done));

function result<Value>(work: (done: (error: Error | null, value: Value) => void) => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error) : resolve(value)));
  });
}

/** Parameters of a prepared statement. mysql2 would send integers as doubles, which some servers reject or round. */
function asSent(parameters: SqlValue[]): (SqlValue | TypedParameterValue)[] {
  return parameters.map((value) => (Number.isInteger(value) ? mysql.TypedParameter.LONGLONG(value as number) : value));
}
