import type { DataSource, EntityManager } from 'typeorm';
import type { SqlClient } from './sql-client.js';
import type { SqlValue } from './sql-dialect.js';
import { SQLITE_DIALECT } from './sql-dialect.js';
import { type SqliteConnection, SqliteStatements } from './sqlite-statements.js';
import { SqliteWriter } from './sqlite-writer.js';
import type { BoundWrite, InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';
import { remainingMs } from './statement-timeout.js';

/** Limit of a write outside of requests, including its wait for the lock of another process. */
const BACKGROUND_WRITE_TIMEOUT_MS = 5_000;

/**
 * The embedded database. Its driver is synchronous, so no statement may wait for the lock of another process: reads have
 * a connection of their own, which needs no lock (WAL), and writes wait in `SqliteWriter`.
 */
export class SqliteClient implements SqlClient {
  readonly dialect = SQLITE_DIALECT;
  private readonly reads: SqliteStatements;

  private constructor(
    reader: SqliteConnection,
    private readonly writer: SqliteWriter,
  ) {
    this.reads = new SqliteStatements(reader);
  }

  /** @param dataSource its connection reads */
  static async open(dataSource: DataSource): Promise<SqliteClient> {
    const { databaseConnection } = dataSource.driver as unknown as { databaseConnection: SqliteConnection };
    return new SqliteClient(databaseConnection, await SqliteWriter.open(dataSource));
  }

  async select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]> {
    return this.reads.select(textOf(statement), parameters);
  }

  async insert(statement: InsertStatement, parameters: SqlValue[]): Promise<void> {
    await this.write(statement, parameters);
  }

  execute(statement: WriteStatement, parameters: SqlValue[]): Promise<number> {
    return this.write(statement, parameters);
  }

  executeTogether(writes: BoundWrite[]): Promise<number[]> {
    return this.writer.run(
      (prepared) => writes.map(({ statement, parameters }) => prepared.write(textOf(statement), parameters)),
      remainingMs(BACKGROUND_WRITE_TIMEOUT_MS),
    );
  }

  transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result> {
    return this.writer.transaction(work, timeoutMs);
  }

  secondsWithoutWrite(): Promise<number> {
    return this.writer.secondsWithoutWrite();
  }

  close(): Promise<void> {
    return this.writer.close();
  }

  private write(statement: Statement, parameters: SqlValue[]): Promise<number> {
    return this.writer.run(
      (prepared) => prepared.write(textOf(statement), parameters),
      remainingMs(BACKGROUND_WRITE_TIMEOUT_MS),
    );
  }
}

const textOf = (statement: Statement) => statement.text(SQLITE_DIALECT);
