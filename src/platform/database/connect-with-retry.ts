import { Logger } from '@nestjs/common';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { Clock } from '../clock.js';
import type { Configuration } from '../configuration/configuration.js';
import { assertUniqueTables } from './entity-checks.js';
import { EarlierSchemaError, hasPendingMigrations, migrate } from './migrate.js';
import { databaseAtStart } from './retry-policy.js';

const logger = new Logger('Database');

/**
 * Opens the connections. If the database is unreachable, tries again each second until `maxWaitMs` is over. Opening a
 * database file is tried once.
 *
 * @throws Error if two entities have the same table
 */
export async function connectWithRetry(options: DataSourceOptions, maxWaitMs: number): Promise<DataSource> {
  const dataSource = new DataSource(options);
  const isFile = options.type === 'better-sqlite3';
  const retries = new RetryLog();
  await databaseAtStart(isFile ? 0 : maxWaitMs).run(
    async () => void (await dataSource.initialize()),
    (error) => retries.failed(error),
  );
  retries.succeeded();
  try {
    assertUniqueTables(dataSource);
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
  return dataSource;
}

/**
 * Brings the schema up to date if MIGRATE_ON_START allows it. Else waits for the migrations: a process that starts
 * before them is alive and not ready.
 */
export async function awaitCurrentSchema(
  dataSource: DataSource,
  { MIGRATE_ON_START }: Configuration,
  clock: Clock,
  maxWaitMs: number,
): Promise<void> {
  if (MIGRATE_ON_START) {
    const migrated = await migrate(dataSource, clock);
    if (migrated.length > 0) logger.log(`migrated: ${migrated.join(', ')}`);
    return;
  }
  const retries = new RetryLog();
  let earlierSchema: EarlierSchemaError | undefined;
  await databaseAtStart(maxWaitMs).run(
    async () => {
      const isPending = await hasPendingMigrations(dataSource).catch((error) => {
        if (!(error instanceof EarlierSchemaError)) throw error;
        earlierSchema = error;
        return false;
      });
      if (isPending) throw new Error('migrations are pending; run: node dist/cli.js migrate');
    },
    (error) => retries.failed(error),
  );
  if (earlierSchema) throw earlierSchema;
  retries.succeeded();
}

/** Logs why the database is not usable, again when the reason changes, and when it is usable. */
class RetryLog {
  private logged = '';

  failed(error: unknown): void {
    const { message } = error as Error;
    if (message !== this.logged)
      logger.warn(`the database is not usable yet; the process tries again each second: ${message}`);
    this.logged = message;
  }

  succeeded(): void {
    if (this.logged !== '') logger.log('the database is usable now');
  }
}
