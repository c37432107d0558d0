import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { completeUpgrade } from '../access-token/migration-state.js';
import { Clock } from '../platform/clock.js';
import { DATABASE_VARIABLES, loadConfiguration } from '../platform/configuration/load-configuration.js';
import { connectWithRetry } from '../platform/database/connect-with-retry.js';
import { dataSourceOptions } from '../platform/database/data-source-options.js';
import { hasPendingMigrations, migrate } from '../platform/database/migrate.js';
import { SQLITE_LOCK } from '../platform/database/retry-policy.js';
import { commandLog } from '../platform/logging/log.js';
import { ServiceLogger } from '../platform/logging/service-logger.js';
import type { CommandContext } from './command-context.js';
import { assertDatabaseExists } from './existing-database.js';
import { UsageError } from './usage-error.js';

const DATABASE_WAIT_MS = 30_000;

const OPTIONS: Record<string, (dataSource: DataSource, context: CommandContext) => Promise<number>> = {
  '--check': check,
  '--complete': complete,
};

/**
 * `migrate` runs the pending migrations. `migrate --check` ends with exit code 1 if there are any. `migrate --complete`
 * records that no process of release 1 uses the database any more (protocol §9.6).
 */
export async function migrateCommand(parameters: string[], context: CommandContext): Promise<number> {
  const [option, ...more] = parameters;
  const run = option === undefined ? migrateNow : Object.hasOwn(OPTIONS, option) && OPTIONS[option];
  if (!run || more.length > 0) throw new UsageError('migrate: expected no parameters, --check or --complete');
  const configuration = loadConfiguration(process.env, DATABASE_VARIABLES);
  if (option) assertDatabaseExists(configuration);
  Logger.overrideLogger(new ServiceLogger(commandLog(configuration).logger)); // NestJS's own logger writes to stdout
  const dataSource = await connectWithRetry(
    dataSourceOptions(configuration, context.extension.migrations),
    option ? 0 : DATABASE_WAIT_MS,
  );
  try {
    return await run(dataSource, context);
  } finally {
    await dataSource.destroy();
  }
}

async function migrateNow(dataSource: DataSource, { print }: CommandContext): Promise<number> {
  const done = await migrate(dataSource, new Clock());
  print(done.length > 0 ? done.map((name) => `migrated: ${name}\n`).join('') : 'up to date\n');
  return 0;
}

async function check(dataSource: DataSource, { print }: CommandContext): Promise<number> {
  const pending = await hasPendingMigrations(dataSource);
  print(pending ? 'migrations are pending\n' : 'up to date\n');
  return pending ? 1 : 0;
}

async function complete(dataSource: DataSource, { print }: CommandContext): Promise<number> {
  if (await hasPendingMigrations(dataSource)) throw new Error('migrations are pending; run migrate first');
  const isNew = await SQLITE_LOCK.run(() => completeUpgrade(dataSource, new Clock().now()));
  print(isNew ? 'complete\n' : 'was complete already\n');
  return 0;
}
