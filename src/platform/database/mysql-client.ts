import type { Pool, PoolConnection, ResultSetHeader } from 'mysql2';
import type { DataSource, EntityManager } from 'typeorm';
import { AbandonedTaskError, BoundedQueue } from '../bounded-queue.js';
import { mysqlPool, poolState } from '../private-members.js';
import { DeadlineExceededError, isUnavailable, STATEMENT_TIMEOUT_MS } from './database-errors.js';
import { asSent, runTransaction, sendTransaction } from './mysql-transaction.js';
import type { PoolUsage, SqlClient } from './sql-client.js';
import { MYSQL_DIALECT, type SqlValue } from './sql-dialect.js';
import type { BoundWrite, InsertStatement, SelectStatement, WriteStatement } from './statement.js';
import { copyRows, StatementBatcher, splitInserts, splitRows } from './statement-batcher.js';

type Done = (error: Error | null, result?: unknown) => void;

/**
 * Prepared statements over a mysql2 pool. The time limit of a statement includes its wait for a connection, which the
 * pool's own time-outs do not include. The connection of a statement that timed out is destroyed.
 */
export class MysqlClient implements SqlClient {
  readonly dialect = MYSQL_DIALECT;
  private rejected = 0;
  private readonly selects = new StatementBatcher<unknown[]>({
    dialect: MYSQL_DIALECT,
    mayPad: true,
    send: (sql, parameters) => this.send(sql, parameters) as Promise<unknown[]>,
    split: splitRows,
    copy: copyRows,
  });
  private readonly writes = new StatementBatcher<number>({
    dialect: MYSQL_DIALECT,
    mayPad: false,
    send: async (sql, parameters) => ((await this.send(sql, parameters)) as ResultSetHeader).affectedRows,
    split: splitInserts,
  });

  private readonly pool: Pool;
  private readonly transactions: BoundedQueue;

  constructor(private readonly dataSource: DataSource) {
    this.pool = mysqlPool(dataSource);
    const { limit } = poolState(this.pool);
    // a transaction may wait for the locks of others; the other half of the pool serves all other requests meanwhile
    this.transactions = new BoundedQueue({ maxRunning: Math.ceil(limit / 2), maxWaiting: Infinity });
  }

  select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]> {
    return this.selects.send(statement, parameters);
  }

  write(statement: InsertStatement | WriteStatement, parameters: SqlValue[]): Promise<number> {
    return this.writes.send(statement, parameters);
  }

  async executeTogether(writes: BoundWrite[]): Promise<number[]> {
    const results = await this.withConnection((connection, done) => {
      sendTransaction(connection, writes).then((sent) => done(null, sent), done);
    });
    return (results as ResultSetHeader[]).map(({ affectedRows }) => affectedRows);
  }

  async transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result> {
    const until = performance.now() + timeoutMs;
    try {
      return await this.transactions.run(
        () => runTransaction(this.dataSource, work, until - performance.now()),
        AbortSignal.timeout(Math.ceil(timeoutMs)),
      );
    } catch (error) {
      throw error instanceof AbandonedTaskError ? new DeadlineExceededError(timeoutMs) : error;
    }
  }

  usage(): PoolUsage {
    return { ...poolState(this.pool), rejected: this.rejected };
  }

  private send(sql: string, parameters: SqlValue[]): Promise<unknown> {
    return this.withConnection((connection, done) => connection.execute(sql, asSent(parameters), done));
  }

  private withConnection(work: (connection: PoolConnection, done: Done) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let connection: PoolConnection | undefined;
      let isAbandoned = false;
      /** The time limit has passed, but `abandon` has not run yet, so the response may still arrive. */
      let isTimeOver = false;
      let isDone = false;
      const abandon = () => {
        if (isDone) return;
        isAbandoned = true;
        connection?.destroy(); // a late response must not reach the next statement
        reject(new DeadlineExceededError(STATEMENT_TIMEOUT_MS));
      };
      // setImmediate lets node read the sockets once more: the response may have arrived while the process was paused
      const timer = setTimeout(() => {
        isTimeOver = true;
        setImmediate(abandon);
      }, STATEMENT_TIMEOUT_MS);
      const finish = () => {
        isDone = true;
        clearTimeout(timer);
      };
      this.pool.getConnection((poolError, acquired) => {
        // too late to send: `abandon` has rejected, or is about to
        if (isAbandoned || (isTimeOver && acquired)) return acquired?.release();
        if (poolError) {
          if (poolError.message.startsWith('Queue limit')) this.rejected++;
          finish();
          return reject(poolError);
        }
        connection = acquired;
        work(acquired, (queryError, result) => {
          if (isAbandoned) return;
          finish();
          // for example a primary that was demoted: other statements must not use this connection
          if (queryError && isUnavailable(queryError)) acquired.destroy();
          else acquired.release();
          if (queryError) reject(queryError);
          else resolve(result);
        });
      });
    });
  }
}
