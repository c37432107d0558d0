import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import type { DataSource, EntityManager, EntityTarget, FindManyOptions, ObjectLiteral } from 'typeorm';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { sinceFirstStatement } from '../request-context/request-context.js';
import { traced } from '../tracing/tracing.js';
import { DeadlineExceededError, isRepeatable, isUnavailable } from './database-errors.js';
import { DatabaseMetrics } from './database-metrics.js';
import { MysqlClient } from './mysql-client.js';
import type { SqlClient, SqlValue } from './sql-client.js';
import { SqliteClient, type SqliteConnection } from './sqlite-client.js';

/** Milliseconds after which a statement is given up and its connection destroyed. */
const DEADLINE = 1_000;
/** Milliseconds for a whole table. */
const READ_DEADLINE = 5_000;
const ATTEMPTS = 5;
/** Milliseconds from a request's first statement after which none of its others goes on: a caller waits no longer than 3 s. */
const LONGEST_REQUEST = 2_800;
const RESENDS = 2;
const RESEND_PAUSE = 200;

/**
 * The statements of request paths: one round trip each, bounded in time, repeated where the server asks for it.
 * TypeORM's repositories serve what is not one: the registry, the operator's commands.
 */
@Injectable()
export class Database {
  /** Statements sent since the start. @internal */
  statements = 0;
  /** `IGNORE` or `OR IGNORE`: `INSERT ${ignore} INTO` skips a row whose key exists. */
  readonly ignore: string;
  /** SQL for the present time of the database, which all processes share. */
  readonly now: string;
  private readonly client: SqlClient;
  private lastTransaction: Promise<unknown> = Promise.resolve();

  private readonly metrics: DatabaseMetrics;

  constructor(
    private readonly dataSource: DataSource,
    metrics: MetricsRegistry,
  ) {
    this.client = clientOf(dataSource);
    this.ignore = this.client.ignore;
    this.now = this.client.now;
    this.metrics = new DatabaseMetrics(metrics, () => this.client.usage?.());
  }

  /** SQL for the whole milliseconds from a time in a column to the present time of the database. */
  millisecondsSince(column: string): string {
    return this.client.millisecondsSince(column);
  }

  /** The text of a DELETE of at most so many rows, in an order. */
  deleteInOrder(table: string, where: string, order: string, limit: number): string {
    return this.client.deleteInOrder(table, where, order, limit);
  }

  /** @throws ServiceUnavailableException when the database is away or too slow */
  select<Row>(sql: string, parameters: SqlValue[]): Promise<Row[]> {
    return this.attempt(sql, () => inTime(() => this.client.select(sql, parameters) as Promise<Row[]>));
  }

  /**
   * Inserts one row, `INSERT INTO … VALUES (?, …)`, that no other has the key of: rows of one turn of the event loop are
   * inserted together or not at all.
   *
   * @throws ServiceUnavailableException when the database is away or too slow; the row may be there
   */
  insert(sql: string, parameters: SqlValue[]): Promise<void> {
    return this.attempt(sql, () => inTime(() => this.client.insert(sql, parameters)));
  }

  /**
   * Sends one INSERT, UPDATE or DELETE and resolves to the number of rows it matched.
   *
   * @throws ServiceUnavailableException when the database is away or too slow; the change may have happened
   */
  change(sql: string, parameters: SqlValue[]): Promise<number> {
    return this.attempt(sql, () => inTime(() => this.client.change(sql, parameters)));
  }

  /**
   * A change that says the same when it is sent twice: one whose answer was lost is sent again.
   *
   * @throws ServiceUnavailableException when the database stays away; the change may have happened
   */
  async changeAgain(sql: string, parameters: SqlValue[]): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.change(sql, parameters);
      } catch (error) {
        if (attempt === RESENDS || !(error instanceof ServiceUnavailableException)) throw error;
        await sleep(RESEND_PAUSE * attempt);
      }
    }
  }

  /**
   * Rows of a small table as entities, bounded like any statement. A read that hangs may keep its connection; it keeps
   * nobody waiting.
   *
   * @throws ServiceUnavailableException
   */
  read<Entity extends ObjectLiteral>(
    entity: EntityTarget<Entity>,
    options: FindManyOptions<Entity> = {},
  ): Promise<Entity[]> {
    const repository = this.dataSource.getRepository(entity);
    const { tableName } = repository.metadata;
    return this.attempt(`SELECT … FROM ${tableName}`, () => withDeadline(repository.find(options), READ_DEADLINE));
  }

  /**
   * Several writes as one. Not for request paths; one at a time, since SQLite has one connection. `work` is done again
   * where the server asks for it.
   *
   * @throws ServiceUnavailableException
   */
  transaction<Result>(work: (manager: EntityManager) => Promise<Result>): Promise<Result> {
    const send = () => this.dataSource.transaction(work);
    const result = this.lastTransaction.then(() => this.attempt('BEGIN … COMMIT', send));
    this.lastTransaction = result.catch(() => undefined);
    return result;
  }

  private async attempt<Result>(sql: string, send: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        this.statements++;
        const result = await traced('database', { 'db.query.text': sql }, send);
        this.metrics.count('done');
        return result;
      } catch (error) {
        if (isRepeatable(error) && attempt < ATTEMPTS) {
          this.metrics.count('repeated');
          await sleep(Math.random() * 20 * attempt);
          continue;
        }
        const isAway = isUnavailable(error);
        this.metrics.count(isAway ? 'unavailable' : 'failed');
        if (!isAway) throw error;
        throw new ServiceUnavailableException(`the database is away: ${(error as Error).message}`, { cause: error });
      }
    }
  }
}

function clientOf({ driver, options }: DataSource): SqlClient {
  if (options.type === 'better-sqlite3') {
    return new SqliteClient((driver as unknown as { databaseConnection: SqliteConnection }).databaseConnection);
  }
  return new MysqlClient((driver as unknown as { pool: ConstructorParameters<typeof MysqlClient>[0] }).pool, DEADLINE);
}

/** A statement late in its request has what is left of the request's time, if that is less than its own. */
function inTime<Result>(send: () => Promise<Result>): Promise<Result> {
  const left = LONGEST_REQUEST - sinceFirstStatement();
  if (left > DEADLINE) return send();
  if (left <= 0) return Promise.reject(new DeadlineExceededError(0));
  return withDeadline(send(), left);
}

function withDeadline<Result>(work: Promise<Result>, milliseconds: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceededError(milliseconds)), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
