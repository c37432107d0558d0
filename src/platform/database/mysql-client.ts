import type { Pool, PoolConnection, ResultSetHeader } from 'mysql2';
import type { DataSource, EntityManager } from 'typeorm';
import { AbandonedTaskError, BoundedQueue } from '../bounded-queue.js';
import { mysqlPool, poolState } from '../private-members.js';
import { breaksConnection, DeadlineExceededError, STATEMENT_TIMEOUT_MS, withTimeout } from './database-errors.js';
import { asSent, result, runTransaction, sendTransaction } from './mysql-transaction.js';
import type { PoolUsage, SqlClient } from './sql-client.js';
import { MYSQL_DIALECT, type SqlValue } from './sql-dialect.js';
import type { BoundWrite, InsertStatement, SelectStatement, WriteStatement } from './statement.js';
import { copyRows, StatementBatcher, splitInserts, splitRows } from './statement-batcher.js';

/** Unlike the time-outs of mysql2's pool, the limit of a statement includes its wait for a connection. */
export class MysqlClient implements SqlClient {
  readonly dialect = MYSQL_DIALECT;
  private rejected = 0;
  private readonly selects = new StatementBatcher<unknown[]>({
    mayPad: true,
    send: (sql, parameters) => this.send(sql, parameters) as Promise<unknown[]>,
    split: splitRows,
    copy: copyRows,
  });
  private readonly writes = new StatementBatcher<number>({
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
    const results = await this.withConnection((connection) => sendTransaction(connection, writes));
    return (results as ResultSetHeader[]).map(({ affectedRows }) => affectedRows);
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

  usage(): PoolUsage {
    return { ...poolState(this.pool), rejected: this.rejected };
  }

  private send(sql: string, parameters: SqlValue[]): Promise<unknown> {
    return this.withConnection((connection) => result((done) => connection.execute(sql, asSent(parameters), done)));
  }

  private async withConnection<Result>(work: (connection: PoolConnection) => Promise<Result>): Promise<Result> {
    let connection: PoolConnection | undefined;
    let isOver = false;
    const until = performance.now() + STATEMENT_TIMEOUT_MS;
    const send = async () => {
      const acquired = await result<PoolConnection>((done) => this.pool.getConnection(done));
      // a timer of Node may end before `until`
      if (isOver || performance.now() >= until) {
        acquired.release();
        throw new DeadlineExceededError(STATEMENT_TIMEOUT_MS);
      }
      connection = acquired;
      return work(acquired);
    };
    try {
      const done = await withTimeout(send(), STATEMENT_TIMEOUT_MS);
      connection?.release();
      return done as Result;
    } catch (error) {
      isOver = true;
      if ((error as Error).message.startsWith('Queue limit')) this.rejected++;
      // a late response must not reach the next statement, and other statements must not use a demoted primary
      if (breaksConnection(error)) connection?.destroy();
      else connection?.release();
      throw error;
    }
  }
}
