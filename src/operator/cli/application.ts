import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { rootModule } from '../../bootstrap.js';
import type { Configuration } from '../../platform/configuration/configuration.js';
import { assertDatabaseExists, assertDatabaseHasContent } from '../../platform/configuration/database-url.js';
import { loadConfiguration } from '../../platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../platform/database/data-source-options.js';
import { PendingMigrationsError } from '../../platform/database/database-errors.js';
import { connectWithRetry } from '../../platform/database/database-start.js';
import { hasPendingMigrations } from '../../platform/database/migrate.js';
import { commandLog, serviceLogger } from '../../platform/logging/log.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import type { Extension } from '../../token/extension.js';

export interface CommandOptions {
  /** All if omitted. */
  variables?: string[];
  createsDatabase?: boolean;
  /** Whether the start may migrate an embedded database. By default, it may. */
  migrates?: boolean;
  /** A folder for an embedded database and keys in place of the configured ones. */
  folder?: string;
}

/** Starts the application without its ports. If the database is unreachable, the command fails at once. */
export async function withApplication<Result>(
  extension: Extension,
  work: (application: INestApplicationContext) => Promise<Result>,
  { variables, createsDatabase = false, migrates = true, folder }: CommandOptions = {},
): Promise<Result> {
  const configuration = folder
    ? loadConfiguration({ DATA_DIR: folder, LOG_LEVEL: 'fatal' })
    : loadConfiguration(process.env, variables);
  if (!createsDatabase) assertDatabaseExists(configuration);
  await assertDatabaseHasContent(configuration);
  if (!migrates) await assertMigrated(extension, configuration);
  const log = commandLog(configuration);
  for (const warning of configuration.warnings) log.logger.warn(warning);
  const module = rootModule({ ...extension, configuration, log, metrics: new MetricsRegistry(), databaseWaitMs: 0 });
  const logger = serviceLogger(log.logger);
  const application = await NestFactory.createApplicationContext(module, { abortOnError: false, logger });
  try {
    return await work(application);
  } finally {
    await application.close();
  }
}

/** @throws PendingMigrationsError */
async function assertMigrated({ migrations }: Extension, configuration: Configuration): Promise<void> {
  const dataSource = await connectWithRetry(dataSourceOptions(configuration, migrations), 0);
  const isPending = await hasPendingMigrations(dataSource).finally(() => dataSource.destroy());
  if (isPending) throw new PendingMigrationsError();
}
