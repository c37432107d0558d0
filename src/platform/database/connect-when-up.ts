import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { Clock } from '../clock.js';
import type { Configuration } from '../configuration/configuration.js';
import { hasPendingMigrations, migrate } from './migrate.js';

const RETRY = 1_000;
const logger = new Logger('Database');

/**
 * Opens the connections; while the server is away, tries again until `patience` (milliseconds) is over. A file that cannot
 * be opened will not mend itself.
 *
 * @throws Error when two entities have one table
 */
export async function connectWhenUp(options: DataSourceOptions, patience: number): Promise<DataSource> {
  const dataSource = new DataSource(options);
  await until(options.type === 'better-sqlite3' ? 0 : patience, async () => {
    await dataSource.initialize();
    return undefined;
  });
  try {
    refuseSharedTables(dataSource);
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
  return dataSource;
}

/** TypeORM would let two entities write into one table, each as if it were its own. */
function refuseSharedTables({ entityMetadatas }: DataSource): void {
  const owners = new Map<string, string>();
  for (const { tableName, name } of entityMetadatas) {
    const owner = owners.get(tableName);
    if (owner) throw new Error(`${owner} and ${name}: two entities have the table "${tableName}"; rename yours`);
    owners.set(tableName, name);
  }
}

/**
 * Brings the schema up to date where MIGRATE_ON_START allows it, else waits until somebody has: a pod that is rolled out
 * before its migrations is not ready, rather than broken.
 */
export async function awaitCurrentSchema(
  dataSource: DataSource,
  { MIGRATE_ON_START }: Configuration,
  clock: Clock,
  patience: number,
): Promise<void> {
  if (MIGRATE_ON_START) {
    for (const name of await migrate(dataSource, clock)) logger.log(`migrated: ${name}`);
    return;
  }
  await until(patience, async () => {
    if (await hasPendingMigrations(dataSource))
      throw new Error('migrations are pending; run: node dist/cli.js migrate');
  });
}

async function until(patience: number, attempt: () => Promise<void>): Promise<void> {
  let told = '';
  for (let waited = 0; ; waited += RETRY) {
    try {
      return await attempt();
    } catch (error) {
      if (waited >= patience) throw error;
      const { message } = error as Error;
      if (message !== told) logger.warn(`DATABASE_URL: not usable yet, trying again each second: ${message}`);
      told = message;
      await sleep(RETRY);
    }
  }
}
