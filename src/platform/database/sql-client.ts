import type { EntityManager } from 'typeorm';
import type { poolState } from '../private-members.js';
import type { SqlDialect, SqlValue } from './sql-dialect.js';
import type { BoundWrite, InsertStatement, SelectStatement, WriteStatement } from './statement.js';

/** `rejected`: the number of statements since the start for which too many waited already. */
export type PoolUsage = ReturnType<typeof poolState> & { rejected: number };

export interface SqlClient {
  readonly dialect: SqlDialect;

  select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]>;

  /** Resolves to the number of rows that the statement inserted or matched. */
  write(statement: InsertStatement | WriteStatement, parameters: SqlValue[]): Promise<number>;

  /** As one transaction. Resolves to the numbers of rows that the writes matched. */
  executeTogether(writes: BoundWrite[]): Promise<number[]>;

  transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result>;

  usage?(): PoolUsage;

  /** Only of the embedded database, as the metric `cas_database_seconds_without_write`. */
  secondsWithoutWrite?(): Promise<number>;

  /** Closes the connections that the data source does not know. */
  close?(): Promise<void>;
}
