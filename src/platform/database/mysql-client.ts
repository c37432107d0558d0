import mysql, { type PoolConnection, type ResultSetHeader, type TypedParameterValue } from 'mysql2';
import type { DataSource, EntityManager, QueryResult, QueryRunner } from 'typeorm';
import { AbandonedTaskError, BoundedQueue } from '../bounded-queue.js';
import { STATEMENTS_TIMEOUT_MS } from '../request-context/request-context.js';
import {
  DeadlineExceededError,
  isUnavailable,
  leavesSessionIntact,
  remainingMs,
  STATEMENT_TIMEOUT_MS,
  withTimeout,
} from './database-errors.js';
import { transactionRunner } from './in-transaction.js';
import { hasIdleLimit, type MysqlPool, poolOf } from './mysql-pool.js';
import { SqlClient } from './sql-client.js';
import { MYSQL_DIALECT, type SqlValue } from './sql-dialect.js';
import type { BoundWrite, InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';
import { copyRows, StatementBatcher, splitInserts, splitRows } from './statement-batcher.js';

/** Read once: mysql2 exports it by a getter, which costs 2 µs for each integer. */
const { TypedParameter } = mysql;

/** Unlike the time-outs of mysql2's pool, the limit of a statement includes its wait for a connection. */
export class MysqlClient extends SqlClient {
  readonly dialect = MYSQL_DIALECT;
  private readonly selects = new StatementBatcher<unknown[]>({
    mayPad: true,
    send: (statement, uses, waitMs) => {
      const execute = (connection: PoolConnection) => {
        const parameters = uses();
        return executeOn(connection, statement.text(MYSQL_DIALECT, parameters.length), parameters.flat());
      };
      return this.withConnection(execute, waitMs) as Promise<unknown[]>;
    },
    split: splitRows,
    copy: copyRows,
  });
  private readonly writes = new StatementBatcher<number>({
    mayPad: false,
    send: (statement, uses, waitMs) => this.writeAll(statement, uses, waitMs),
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
    const send = (connection: PoolConnection) => runnerOn(connection, this.dataSource).query(sql, parameters, true);
    return this.withConnection(send, remainingMs(Infinity));
  }

  async transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result> {
    const until = performance.now() + timeoutMs;
    try {
      return await this.transactions.runWithin(timeoutMs, () => this.runTransaction(work, until - performance.now()));
    } catch (error) {
      throw error instanceof AbandonedTaskError ? new DeadlineExceededError(timeoutMs) : error;
    }
  }

  override usage() {
    return this.pool.usage();
  }

  private async writeAll(statement: Statement, uses: () => SqlValue[][], waitMs: number): Promise<number> {
    const writes = () => {
      const timely = uses();
      if (timely.length === 0) throw new DeadlineExceededError(waitMs);
      return statement.writes(timely) as [BoundWrite, ...BoundWrite[]];
    };
    const isTransaction = writes().length > 1;
    const write = async (connection: PoolConnection) => {
      const [first, ...others] = writes();
      if (others.length === 0) return executeWrite(connection, first);
      const [result] = await sendTransaction(connection, [first, ...others]);
      return result;
    };
    const timeoutMs = isTransaction ? STATEMENTS_TIMEOUT_MS : STATEMENT_TIMEOUT_MS;
    return ((await this.withConnection(write, waitMs, timeoutMs)) as ResultSetHeader).affectedRows;
  }

  /**
   * @param waitMs how long the statement may wait for a connection: until its request has got its response
   * @param timeoutMs limit of the wait and the work together
   */
  private async withConnection<Result>(
    work: (connection: PoolConnection) => Promise<Result>,
    waitMs: number,
    timeoutMs = STATEMENT_TIMEOUT_MS,
  ): Promise<Result> {
    const until = performance.now() + timeoutMs;
    const connection = await this.pool.acquire(Math.min(waitMs, timeoutMs));
    try {
      const done = await withTimeout(work(connection), until - performance.now(), timeoutMs);
      connection.release();
      return done;
    } catch (error) {
      // a late response must not reach the next statement
      if (leavesSessionIntact(error)) connection.release();
      else connection.destroy();
      throw error;
    }
  }

  /**
   * A connection whose transaction did not end cleanly is destroyed, which rolls the transaction back. `timeoutMs`
   * limits the wait for a connection and the work. COMMIT has at least 1 s, because its outcome is unknown after a
   * time-out.
   */
  private async runTransaction<Result>(
    work: (manager: EntityManager) => Promise<Result>,
    timeoutMs: number,
  ): Promise<Result> {
    const until = performance.now() + timeoutMs;
    const connection = await this.pool.acquire(timeoutMs);
    const shared = runnerOn(connection, this.dataSource);
    const { runner, end } = transactionRunner(shared);
    const begin = async () => {
      await limitIdleTime(connection);
      await shared.startTransaction();
    };
    const rollBack = async () => {
      await withTimeout(end(), STATEMENT_TIMEOUT_MS);
      await withTimeout(shared.rollbackTransaction(), STATEMENT_TIMEOUT_MS);
    };
    try {
      await withTimeout(begin(), until - performance.now());
      const result = await withTimeout(work(this.dataSource.createEntityManager(runner)), until - performance.now());
      await withTimeout(end(), until - performance.now());
      await withTimeout(shared.commitTransaction(), Math.max(until - performance.now(), STATEMENT_TIMEOUT_MS));
      return result;
    } catch (error) {
      if (isUnavailable(error) && !leavesSessionIntact(error)) connection.destroy();
      else await rollBack().catch(() => connection.destroy());
      throw error;
    } finally {
      removeIdleLimit(connection);
      connection.release();
    }
  }
}

/** A query runner of TypeORM that uses this connection, and does not release it. */
function runnerOn(connection: PoolConnection, { driver }: DataSource): QueryRunner {
  return Object.create(driver.createQueryRunner('master'), { connect: { value: async () => connection } });
}

/** Without this limit, the server would hold the locks of a lost host's transaction for 8 hours. */
const IDLE_TIMEOUT_SECONDS = 10;

/** After an error that does not leave the session intact, the caller destroys the connection, which rolls back. */
export async function sendTransaction(connection: PoolConnection, writes: BoundWrite[]): Promise<unknown[]> {
  await limitIdleTime(connection);
  try {
    const results: unknown[] = [];
    await send(connection, 'START TRANSACTION');
    for (const write of writes) results.push(await executeWrite(connection, write));
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

const executeOn = (connection: PoolConnection, sql: string, parameters: SqlValue[]) =>
  result((done) => connection.execute(sql, asSent(parameters), done));

const executeWrite = (connection: PoolConnection, { statement, parameters, size }: BoundWrite) =>
  executeOn(connection, statement.text(MYSQL_DIALECT, size), parameters);

function result<Value>(work: (done: (error: Error | null, value: Value) => void) => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error) : resolve(value)));
  });
}

/** Parameters of a prepared statement. mysql2 would send integers as doubles, which some servers reject or round. */
function asSent(parameters: SqlValue[]): (SqlValue | TypedParameterValue)[] {
  return parameters.map((value) => (Number.isInteger(value) ? TypedParameter.LONGLONG(value as number) : value));
}
