import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource, type DataSourceOptions, type EntityManager, type QueryResult } from 'typeorm';
import { AbandonedTaskError, BoundedQueue } from '../bounded-queue.js';
import { DeadlineExceededError, isLocked, isUnavailable, remainingMs, withTimeout } from './database-errors.js';
import { transactionRunner } from './in-transaction.js';
import { SqlClient } from './sql-client.js';
import { isSelect, SQLITE_DIALECT, type SqlValue } from './sql-dialect.js';
import { prepareFile, type SqliteConnection, SqliteStatements } from './sqlite-statements.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';

type FileOptions = Extract<DataSourceOptions, { type: 'better-sqlite3' }>;

const LOCK_POLL_MS = 10;
const PROBE_TIMEOUT_MS = 500;

/** Limit of a write outside of requests, including its wait for the lock of another process. */
const BACKGROUND_WRITE_TIMEOUT_MS = 5_000;

/**
 * The embedded database. Because its driver is synchronous, no statement may wait for the lock of another process.
 * There are three connections. One reads for declared statements, and one for entities; neither needs a lock (WAL).
 * Writes and transactions run one after another on the third, so that no statement of one request runs inside the
 * transaction of another.
 *
 * Each write begins with BEGIN IMMEDIATE, which either takes the write lock of the file or fails immediately. While
 * another process holds the lock, only this statement is repeated, and the process serves other requests in between.
 */
export class SqliteClient extends SqlClient {
  readonly dialect = SQLITE_DIALECT;
  private readonly writes = new BoundedQueue({ maxRunning: 1, maxWaiting: Infinity });
  private readonly reads: SqliteStatements;
  /** Its connection writes. */
  private readonly dataSource: DataSource;
  private connection!: SqliteConnection;
  private statements!: SqliteStatements;
  /** When the first attempt since the last successful write failed to get the lock or failed, by performance.now(). */
  private failingSince: number | undefined;
  private isClosed = false;

  private constructor(
    private readonly reading: DataSource,
    private readonly readConnection: SqliteConnection,
  ) {
    super();
    this.reads = new SqliteStatements(readConnection);
    const prepareDatabase = async (connection: SqliteConnection) => {
      await prepareFile(connection);
      this.connection = connection;
      this.statements = new SqliteStatements(connection);
    };
    const { logger } = reading;
    const options = { ...reading.options, logger, migrations: [], prepareDatabase };
    this.dataSource = new DataSource(options as FileOptions);
  }

  static async open(reading: DataSource): Promise<SqliteClient> {
    const { driver: Connection, database } = reading.options as FileOptions;
    const connection: SqliteConnection = new Connection(database);
    await prepareFile(connection);
    const client = new SqliteClient(reading, connection);
    await client.dataSource.initialize();
    return client;
  }

  async select(statement: SelectStatement, parameters: SqlValue[]): Promise<unknown[]> {
    return this.reads.select(textOf(statement), parameters);
  }

  async write(statement: InsertStatement | WriteStatement, parameters: SqlValue[]): Promise<number> {
    const writes = statement.writes([parameters]);
    const runAll = (prepared: SqliteStatements) =>
      writes.map((bound) => prepared.write(textOf(bound.statement), bound.parameters));
    const [written] = await this.run(runAll, remainingMs(BACKGROUND_WRITE_TIMEOUT_MS));
    return written as number;
  }

  query(sql: string, parameters: unknown[]): Promise<QueryResult> {
    const send = ({ driver }: DataSource) => driver.createQueryRunner('master').query(sql, parameters, true);
    if (isSelect(sql)) return send(this.reading);
    return this.inTurn(remainingMs(BACKGROUND_WRITE_TIMEOUT_MS), () => send(this.dataSource));
  }

  /** Runs synchronous statements as one transaction. `timeoutMs` limits the wait for the lock, not the statements. */
  run<Result>(work: (statements: SqliteStatements) => Result, timeoutMs: number): Promise<Result> {
    return this.inTurn(timeoutMs, () => work(this.statements));
  }

  /** When the time is over, the transaction is rolled back, and the manager sends no further statement. */
  transaction<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number): Promise<Result> {
    const until = performance.now() + timeoutMs;
    return this.inTurn(timeoutMs, async () => {
      // TypeORM has one query runner for SQLite, which several transactions would share
      const { runner, end } = transactionRunner(this.dataSource.createQueryRunner());
      try {
        return await withTimeout(work(this.dataSource.createEntityManager(runner)), until - performance.now());
      } finally {
        await end();
      }
    });
  }

  override async secondsWithoutWrite(): Promise<number> {
    // a process that is not ready gets no requests, so no other attempt would notice that writes succeed again
    if (this.failingSince !== undefined) await this.run(writePage, PROBE_TIMEOUT_MS).catch(() => undefined);
    return this.failingSince === undefined ? 0 : (performance.now() - this.failingSince) / 1000;
  }

  /** Waits for the writes under way. Later ones are rejected. */
  override async onApplicationShutdown(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    await this.writes.run(async () => undefined);
    this.readConnection.close();
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
  }

  private async inTurn<Result>(timeoutMs: number, work: () => Result | Promise<Result>): Promise<Result> {
    if (this.isClosed) throw new DeadlineExceededError(0);
    const until = performance.now() + timeoutMs;
    const write = async () => {
      try {
        await this.begin(until, timeoutMs);
        const done = await this.commitAfter(work);
        this.failingSince = undefined;
        return done;
      } catch (error) {
        if (isUnavailable(error)) this.failingSince ??= performance.now();
        throw error;
      }
    };
    try {
      // limits only the wait for other writes: from its turn on, the write itself ends in time
      return await this.writes.runWithin(timeoutMs, write);
    } catch (error) {
      if (!(error instanceof AbandonedTaskError)) throw error;
      this.failingSince ??= performance.now();
      throw new DeadlineExceededError(timeoutMs);
    }
  }

  private async begin(until: number, timeoutMs: number): Promise<void> {
    if (!this.dataSource.isInitialized) await this.reopen();
    for (;;) {
      if (performance.now() >= until) throw new DeadlineExceededError(timeoutMs);
      try {
        return this.connection.exec('BEGIN IMMEDIATE');
      } catch (error) {
        if (!isLocked(error)) {
          await this.reopen();
          throw error;
        }
      }
      this.failingSince ??= performance.now();
      await sleep(LOCK_POLL_MS);
    }
  }

  private async commitAfter<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    let isCommitting = false;
    try {
      const result = await work();
      isCommitting = true;
      this.connection.exec('COMMIT');
      return result;
    } catch (error) {
      if (!this.rollBack() || isCommitting) await this.reopen();
      throw error;
    }
  }

  /** Whether no transaction is open any more. */
  private rollBack(): boolean {
    try {
      this.connection.exec('ROLLBACK');
      return true;
    } catch {
      return false;
    }
  }

  /** Replaces the connection, whose state is unknown. If this fails, the next write tries again. */
  private async reopen(): Promise<void> {
    if (this.dataSource.isInitialized) {
      this.rollBack(); // closing does not release the lock of an open transaction at once
      await this.dataSource.destroy();
    }
    await this.dataSource.initialize();
  }
}

/** Writes one page, and changes nothing: neither the service nor TypeORM uses this number. */
function writePage(statements: SqliteStatements): void {
  statements.write('PRAGMA user_version = 0', []);
}

const textOf = (statement: Statement) => statement.text(SQLITE_DIALECT);
