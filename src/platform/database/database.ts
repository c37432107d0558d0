import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, ServiceUnavailableException } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { DataSource, type EntityManager, type QueryResult } from 'typeorm';
import { MetricsRegistry } from '../metrics.js';
import { STATEMENTS_TIMEOUT_MS, traced } from '../request-context/request-context.js';
import { DeadlineExceededError, isOfDatabase, isUnavailable, remainingMs, withinDeadline } from './database-errors.js';
import { databaseMetrics, OutageLog } from './database-metrics.js';
import { ROLLED_BACK } from './retry-policy.js';
import type { ServiceDataSource } from './service-data-source.js';
import { SqlClient } from './sql-client.js';
import { isSelect, type SqlValue } from './sql-dialect.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';

/** Limit of a transaction outside of requests, such as the application of a registry file. */
const BACKGROUND_TRANSACTION_TIMEOUT_MS = 60_000;

/** One for the process, because on Node 20 each further storage makes every promise slower, also after its last use. */
const currentTransaction = new AsyncLocalStorage<{ database: Database; isRunning: boolean }>();

/**
 * Sends the statements of request paths. `select`, `insert` and `execute` take one round trip of at most 1 s, except an
 * insert into several tables. If all statements of a request together take longer than 2.8 s
 * (`requestContext.remainingMs`), the caller gets 503. On SQLite, a write may also wait for the lock of another process
 * for these 2.8 s. A statement that the server has rolled back is repeated, at most four times. A write whose outcome is
 * unknown is not: its caller gets 503 (protocol §2.12).
 */
@Injectable()
export class Database {
  private readonly statements: Counter<'outcome'>;
  private readonly outages = new OutageLog();

  /**
   * For reads and single writes that are not frequent, as repositories and query builders of entities send them. Each
   * statement is sent alone, with the limits and retries of the declared ones. Several writes, and `save`, need a
   * transaction.
   */
  readonly manager: EntityManager;

  /** @internal */
  constructor(
    @Inject(DataSource) dataSource: ServiceDataSource,
    private readonly client: SqlClient,
    metrics: MetricsRegistry,
  ) {
    this.statements = databaseMetrics(metrics, client);
    this.manager = dataSource.manager;
    dataSource.sendStatement = (sql, parameters) => this.sendAlone(sql, parameters);
  }

  /** Seconds for which all statements of the process have failed. @internal */
  get outageSeconds(): number {
    return this.outages.seconds;
  }

  /** @throws ServiceUnavailableException if the database is unavailable or too slow */
  select<Parameters extends SqlValue[], Row>(
    statement: SelectStatement<Parameters, Row>,
    parameters: NoInfer<Parameters>,
  ): Promise<Row[]> {
    return this.send(statement, () => this.client.select(statement, parameters) as Promise<Row[]>);
  }

  /**
   * Inserts a row, or a row of each of several tables. If a batch fails because of one use, each one is inserted alone.
   *
   * @throws the error of the driver if the key exists (`isDuplicate`)
   * @throws ServiceUnavailableException if the database is unavailable or too slow; the row may have been inserted
   */
  async insert<Parameters extends SqlValue[]>(
    statement: InsertStatement<Parameters>,
    parameters: NoInfer<Parameters>,
  ): Promise<void> {
    this.assertOutsideOfTransaction();
    await this.send(statement, () => this.client.write(statement, parameters), STATEMENTS_TIMEOUT_MS);
  }

  /**
   * Sends one INSERT, UPDATE or DELETE and resolves to the number of rows it matched.
   *
   * @throws ServiceUnavailableException if the database is unavailable or too slow; the change may have happened
   */
  async execute<Parameters extends SqlValue[]>(
    statement: WriteStatement<Parameters>,
    parameters: NoInfer<Parameters>,
  ): Promise<number> {
    this.assertOutsideOfTransaction();
    return this.send(statement, () => this.client.write(statement, parameters));
  }

  /**
   * Runs work as one transaction. `work` runs again if the server has rolled it back. If it rejects, nothing is written.
   *
   * @param timeoutMs limit of the wait for a connection and of the work; by default the deadline of the request, or 60 s
   *   outside of requests
   * @throws ServiceUnavailableException if the database is unavailable or too slow; the changes may have happened
   */
  async transaction<Result>(
    work: (manager: EntityManager) => Promise<Result>,
    timeoutMs = remainingMs(BACKGROUND_TRANSACTION_TIMEOUT_MS),
  ): Promise<Result> {
    this.assertOutsideOfTransaction();
    const until = performance.now() + timeoutMs;
    return this.sendWithRetries('BEGIN … COMMIT', async () => {
      const remaining = until - performance.now();
      if (remaining <= 0) throw new DeadlineExceededError(timeoutMs);
      const state = { database: this, isRunning: true };
      const run = (manager: EntityManager) => currentTransaction.run(state, () => work(manager));
      return this.client.transaction(run, remaining).finally(() => {
        state.isRunning = false;
      });
    });
  }

  /** Such a write would not be a part of the transaction, and could wait for its locks for ever. */
  private assertOutsideOfTransaction(): void {
    const current = currentTransaction.getStore();
    if (current?.database === this && current.isRunning)
      throw new Error('a write inside of a transaction must use the manager of the transaction');
  }

  private async sendAlone(sql: string, parameters: unknown[]): Promise<QueryResult> {
    if (!isSelect(sql)) this.assertOutsideOfTransaction();
    return this.sendWithRetries(sql, () => withinDeadline(() => this.client.query(sql, parameters)));
  }

  private send<Result>(statement: Statement, send: () => Promise<Result>, limitMs?: number): Promise<Result> {
    return this.sendWithRetries(statement.text(this.client.dialect), () => withinDeadline(send, limitMs));
  }

  private async sendWithRetries<Result>(sql: string, send: () => Promise<Result>): Promise<Result> {
    try {
      const result = await ROLLED_BACK.run(
        () => traced('database', { 'db.query.text': sql }, send),
        () => this.statements.inc({ outcome: 'repeated' }),
      );
      this.statements.inc({ outcome: 'done' });
      this.outages.succeeded();
      return result;
    } catch (error) {
      if (!isUnavailable(error)) {
        this.statements.inc({ outcome: isOfDatabase(error) ? 'failed' : 'done' });
        throw error;
      }
      this.statements.inc({ outcome: 'unavailable' });
      this.outages.failed(error);
      const { message } = error as Error;
      throw new ServiceUnavailableException(`the database is unavailable: ${message}`, { cause: error });
    }
  }
}
