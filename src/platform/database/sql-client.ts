import type { EntityManager } from 'typeorm';
import type { SqlDialect, SqlValue } from './sql-dialect.js';
import type { BoundWrite, InsertStatement, SelectStatement, WriteStatement } from './statement.js';

export interface PoolUsage {
  inUse: number;
  idle: number;
  limit: number;
  waiting: number;
  /** Statements rejected since the start, because too many waited already. */
  rejected: number;
}

export interface SqlClient {
  readonly dialect: SqlDialect;

  select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]>;

  /** Resolves to the number of rows that the statement inserted or matched. */
  write(statement: InsertStatement | WriteStatement, parameters: SqlValue[]): Promise<number>;

  /** Sends writes as one transaction. Resolves to the numbers of rows that they matched. */
  executeTogether(writes: BoundWrite[]): Promise<number[]>;

  /** @param timeoutMs limit of the wait for a connection and of the work together */
  transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result>;

  /** Only a client with a pool has this method. */
  usage?(): PoolUsage;

  /**
   * Seconds since the first write that has failed or been waiting for a lock since the last successful write, otherwise
   * 0. Only the client of the embedded database has this method.
   */
  secondsWithoutWrite?(): Promise<number>;

  /** Closes the connections that the data source does not know. */
  close?(): Promise<void>;
}
