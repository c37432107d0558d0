import { Logger } from '@nestjs/common';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { Configuration } from '../configuration/configuration.js';
import { assertUniqueTables } from './entity-checks.js';
import { hasPendingMigrations, migrate } from './migrate.js';
import { databaseAtStart } from './retry-policy.js';

const logger = new Logger('Database');

/**
 * If a server is unreachable, tries again each second until `maxWaitMs` is over. Tries only once to open a file.
 * @throws Error if two entities have the same table
 */
export async function connectWithRetry(options: DataSourceOptions, maxWaitMs: number): Promise<DataSource> {
  const dataSource = new DataSource(options);
  const isFile = options.type === 'better-sqlite3';
  await untilUsable(isFile ? 0 : maxWaitMs, async () => void (await dataSource.initialize()));
  try {
    assertUniqueTables(dataSource);
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
  return dataSource;
}

/** Without MIGRATE_ON_START, waits for the migrations: the process stays alive but not ready. */
export async function awaitCurrentSchema(
  dataSource: DataSource,
  { MIGRATE_ON_START }: Configuration,
  maxWaitMs: number,
): Promise<void> {
  if (MIGRATE_ON_START) {
    const migrated = await migrate(dataSource);
    if (migrated.length > 0) logger.log(`migrated: ${migrated.join(', ')}`);
    return;
  }
  await untilUsable(maxWaitMs, async () => {
    if (await hasPendingMigrations(dataSource))
      throw new Error('migrations are pending; run: node dist/cli.js migrate');
  });
}

async function untilUsable(maxWaitMs: number, work: () => Promise<void>): Promise<void> {
  let logged = '';
  await databaseAtStart(maxWaitMs).run(work, (error) => {
    const { message } = error as Error;
    if (message !== logged)
      logger.warn(`the database is not usable yet; the process tries again each second: ${message}`);
    logged = message;
  });
  if (logged !== '') logger.log('the database is usable now');
}
