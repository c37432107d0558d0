import type { EntityManager, QueryResult } from 'typeorm';
import type { MysqlPool } from './mysql-pool.js';
import type { SqlDialect, SqlValue } from './sql-dialect.js';
import type { InsertStatement, SelectStatement, WriteStatement } from './statement.js';

export abstract class SqlClient {
  abstract readonly dialect: SqlDialect;

  abstract select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]>;

  /** Resolves to the number of rows that the statement, or the first one of several, inserted or matched. */
  abstract write(statement: InsertStatement | WriteStatement, parameters: SqlValue[]): Promise<number>;

  /** Sends a statement of TypeORM. */
  abstract query(sql: string, parameters: unknown[]): Promise<QueryResult>;

  abstract transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result>;

  usage?(): ReturnType<MysqlPool['usage']>;

  /** Only of the embedded database, as the metric `cas_database_seconds_without_write`. */
  secondsWithoutWrite?(): Promise<number>;

  /** Closes the connections that the data source does not know. */
  onApplicationShutdown?(): Promise<void>;
}
