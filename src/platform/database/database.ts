import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import type { DataSource, EntityManager, EntityTarget, FindManyOptions, ObjectLiteral } from 'typeorm';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { traced } from '../tracing/tracing.js';
import { isUnavailable } from './database-errors.js';
import { DatabaseMetrics } from './database-metrics.js';
import { LOST_RESPONSE, ROLLED_BACK_STATEMENT } from './retry-policy.js';
import type { SqlClient } from './sql-client.js';
import { sqlClientOf } from './sql-client-of.js';
import type { SqlValue } from './sql-value.js';
import type { InsertStatement, SelectStatement, Statement, WriteStatement } from './statement.js';
import { TABLE_TIMEOUT_MS, withinDeadline, withTimeout } from './statement-timeout.js';

/**
 * The statements of request paths: one round trip each, bounded in time, repeated where the server asks for it.
 * The registry's changes and the operator's commands use TypeORM's repositories.
 */
@Injectable()
export class Database {
  /** Statements sent since the start. @internal */
  statements = 0;
  private readonly client: SqlClient;
  private lastTransaction: Promise<unknown> = Promise.resolve();

  private readonly metrics: DatabaseMetrics;

  constructor(
    private readonly dataSource: DataSource,
    metrics: MetricsRegistry,
  ) {
    this.client = sqlClientOf(dataSource);
    this.metrics = new DatabaseMetrics(metrics, () => this.client.usage?.());
  }

  /** @throws ServiceUnavailableException when the database is away or too slow */
  select<Parameters extends SqlValue[], Row>(
    statement: SelectStatement<Parameters, Row>,
    parameters: NoInfer<Parameters>,
  ): Promise<Row[]> {
    return this.send(statement, () => this.client.select(statement, parameters) as Promise<Row[]>);
  }

  /**
   * Inserts one row whose key no other row has. Batched rows are inserted together or not at all.
   *
   * @throws ServiceUnavailableException when the database is away or too slow; the row may be there
   */
  insert<Parameters extends SqlValue[]>(
    statement: InsertStatement<Parameters>,
    parameters: NoInfer<Parameters>,
  ): Promise<void> {
    return this.send(statement, () => this.client.insert(statement, parameters));
  }

  /**
   * Sends one INSERT, UPDATE or DELETE and resolves to the number of rows it matched.
   *
   * @throws ServiceUnavailableException when the database is away or too slow; the change may have happened
   */
  execute<Parameters extends SqlValue[]>(
    statement: WriteStatement<Parameters>,
    parameters: NoInfer<Parameters>,
  ): Promise<number> {
    return this.send(statement, () => this.client.execute(statement, parameters));
  }

  /**
   * Like `execute`, for a change that has the same effect when it is sent twice: it is sent again if its response was lost.
   *
   * @throws ServiceUnavailableException when the database stays away; the change may have happened
   */
  executeIdempotent<Parameters extends SqlValue[]>(
    statement: WriteStatement<Parameters>,
    parameters: NoInfer<Parameters>,
  ): Promise<number> {
    return LOST_RESPONSE.run(() => this.execute(statement, parameters));
  }

  /**
   * Rows of a small table as entities, bounded like any statement. A read that hangs may keep its connection; its caller
   * does not wait for it.
   *
   * @throws ServiceUnavailableException
   */
  read<Entity extends ObjectLiteral>(
    entity: EntityTarget<Entity>,
    options: FindManyOptions<Entity> = {},
  ): Promise<Entity[]> {
    const repository = this.dataSource.getRepository(entity);
    const { tableName } = repository.metadata;
    return this.attempt(`SELECT … FROM ${tableName}`, () => withTimeout(repository.find(options), TABLE_TIMEOUT_MS));
  }

  /**
   * Several writes as one. Not for request paths of customers and agents; one at a time, since SQLite has one connection.
   * `work` is done again where the server asks for it. It has no time limit: what follows a commit must follow it.
   *
   * @throws ServiceUnavailableException when the database is away; the changes may have happened
   */
  transaction<Result>(work: (manager: EntityManager) => Promise<Result>): Promise<Result> {
    const send = () => this.dataSource.transaction(work);
    const result = this.lastTransaction.then(() => this.attempt('BEGIN … COMMIT', send));
    this.lastTransaction = result.catch(() => undefined);
    return result;
  }

  private send<Result>(statement: Statement, send: () => Promise<Result>): Promise<Result> {
    return this.attempt(statement.text(this.client.dialect), () => withinDeadline(send));
  }

  private async attempt<Result>(sql: string, send: () => Promise<Result>): Promise<Result> {
    try {
      const result = await ROLLED_BACK_STATEMENT.run(
        () => {
          this.statements++;
          return traced('database', { 'db.query.text': sql }, send);
        },
        () => this.metrics.count('repeated'),
      );
      this.metrics.count('done');
      return result;
    } catch (error) {
      const isAway = isUnavailable(error);
      this.metrics.count(isAway ? 'unavailable' : 'failed');
      if (!isAway) throw error;
      throw unavailable(error);
    }
  }
}

function unavailable(error: unknown): ServiceUnavailableException {
  return new ServiceUnavailableException(`the database is away: ${(error as Error).message}`, { cause: error });
}
