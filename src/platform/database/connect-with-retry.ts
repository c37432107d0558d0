import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { DataSource, DataSourceOptions } from 'typeorm';
import type { Configuration } from '../configuration/configuration.js';
import { PendingMigrationsError } from './database-errors.js';
import { DatabaseStart } from './database-start.js';
import { assertUniqueTables } from './entity-checks.js';
import { assertWritable } from './lease.js';
import { hasPendingMigrations, migrate } from './migrate.js';
import { SQLITE_LOCK } from './retry-policy.js';
import { ServiceDataSource } from './service-data-source.js';

const logger = new Logger('Database');

/**
 * If a server is unreachable, tries again each second until `maxWaitMs` is over. Tries only once to open a file.
 * @throws Error if two entities have the same table
 */
export async function connectWithRetry(options: DataSourceOptions, maxWaitMs: number): Promise<DataSource> {
  const dataSource = new ServiceDataSource(options);
  const isFile = options.type === 'better-sqlite3';
  await new DatabaseStart(isFile ? 0 : maxWaitMs).run(() => dataSource.initialize());
  try {
    assertUniqueTables(dataSource);
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
  return dataSource;
}

/** Without MIGRATE_ON_START, waits for the migrations of another process. */
export async function awaitCurrentSchema(
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
}

/** A process that serves waits for a database that accepts writes. A command may only read. */
export function awaitWritable({ manager }: DataSource, start: DatabaseStart): Promise<void> {
  return start.run(() => SQLITE_LOCK.run(() => assertWritable(manager)));
}
