import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { DataSource, DataSourceOptions } from 'typeorm';
import type { Configuration } from '../configuration/configuration.js';
import { PendingMigrationsError } from './database-errors.js';
import { assertWritable } from './lease.js';
import { hasPendingMigrations, migrate } from './migrate.js';
import { databaseAtStart, SQLITE_LOCK } from './retry-policy.js';
import { ServiceDataSource } from './service-data-source.js';

const logger = new Logger('Database');

/**
 * Runs the steps of a start that need the database. While the database is unavailable, a step runs again each second,
 * until `maxWaitMs` is over, and the process is alive but not ready.
 */
@Injectable()
export class DatabaseStart {
  private logged = '';

  constructor(private readonly maxWaitMs: number) {}

  /** Whether the process is a command, which leaves the work in the background to the service. */
  get isOfCommand(): boolean {
    return this.maxWaitMs === 0;
  }

  async run<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = await databaseAtStart(this.maxWaitMs).run(step, (error) => {
      const { message } = error as Error;
      // the same reason with another number, such as that of the seconds, is no news
      const reason = message.replaceAll(/\d/g, '');
      if (reason !== this.logged) logger.warn(`the process cannot serve yet; it tries again each second: ${message}`);
      this.logged = reason;
    });
    if (this.logged !== '') logger.log('the start goes on');
    this.logged = '';
    return result;
  }
}

/** Tries again each second while a server is unreachable, until `maxWaitMs` is over. Tries only once to open a file. */
export async function connectWithRetry(options: DataSourceOptions, maxWaitMs: number): Promise<DataSource> {
  const dataSource = new ServiceDataSource(options);
  const isFile = options.type === 'better-sqlite3';
  await new DatabaseStart(isFile ? 0 : maxWaitMs).run(() => dataSource.initialize());
  return dataSource;
}

/**
 * Without MIGRATE_ON_START, waits for the migrations of another process. A process that serves also waits until the
 * database accepts writes.
 */
export async function awaitUsableDatabase(
  dataSource: DataSource,
  { MIGRATE_ON_START }: Configuration,
  start: DatabaseStart,
): Promise<void> {
  const owner = randomUUID();
  await start.run(async () => {
    if (MIGRATE_ON_START) {
      const migrated = await migrate(dataSource, owner);
      if (migrated.length > 0) logger.log(`migrated: ${migrated.join(', ')}`);
    } else if (await hasPendingMigrations(dataSource)) throw new PendingMigrationsError();
  });
  if (start.isOfCommand) return;
  await start.run(() => SQLITE_LOCK.run(() => assertWritable(dataSource.manager)));
}
