import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Logger } from '@nestjs/common';
import { assertDatabaseExists, assertDatabaseHasContent } from '../../platform/configuration/database-url.js';
import { DATABASE_VARIABLES, loadConfiguration } from '../../platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../platform/database/data-source-options.js';
import { connectWithRetry } from '../../platform/database/database-start.js';
import { hasPendingMigrations, migrate } from '../../platform/database/migrate.js';
import { commandLog, serviceLogger } from '../../platform/logging/log.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

/** `backup FILE` copies the state of one moment. The service may run and write meanwhile. */
export async function backupCommand(parameters: string[], { print }: CommandContext): Promise<number> {
  expectParameters(parameters, 1);
  const [file] = parameters as [string];
  const configuration = loadConfiguration(process.env, DATABASE_VARIABLES);
  if (!configuration.embedded)
    throw new Error('backup copies an embedded SQLite database; use the tools of your database server for others');
  assertDatabaseExists(configuration);
  await assertDatabaseHasContent(configuration);
  if (existsSync(file)) throw new Error(`${file} exists already`);
  const partial = `${file}.${process.pid}.partial`;
  closeSync(openSync(partial, 'wx', 0o600)); // SQLite writes into an empty file, and keeps its mode
  try {
    const dataSource = await connectWithRetry(dataSourceOptions(configuration), 0);
    await dataSource.query('VACUUM INTO ?', [partial]).finally(() => dataSource.destroy());
    flush(partial); // VACUUM INTO does not wait for the disk
    linkSync(partial, file); // fails if the file exists meanwhile
    flush(dirname(file));
  } finally {
    rmSync(partial, { force: true });
  }
  print(`copied to ${file}\n`);
  return 0;
}

/** Waits until a file or a folder is on the disk. */
function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

const DATABASE_WAIT_MS = 30_000;

/** `migrate` runs the pending migrations. `migrate --check` ends with exit code 1 if there are any. */
export async function migrateCommand(parameters: string[], context: CommandContext): Promise<number> {
  const [option, ...more] = parameters;
  const isCheck = option === '--check';
  if ((option !== undefined && !isCheck) || more.length > 0)
    throw new UsageError('migrate: expected no parameters or --check');
  const configuration = loadConfiguration(process.env, DATABASE_VARIABLES);
  if (isCheck) assertDatabaseExists(configuration);
  const { logger } = commandLog(configuration);
  Logger.overrideLogger(serviceLogger(logger)); // NestJS's own logger writes to stdout
  for (const warning of configuration.warnings) logger.warn(warning);
  const dataSource = await connectWithRetry(
    dataSourceOptions(configuration, context.extension.migrations),
    isCheck ? 0 : DATABASE_WAIT_MS,
  );
  try {
    const isPending = isCheck && (await hasPendingMigrations(dataSource));
    const done = isCheck ? [] : await migrate(dataSource);
    if (isPending) context.print('migrations are pending\n');
    else context.print(done.map((name) => `migrated: ${name}\n`).join('') || 'up to date\n');
    return Number(isPending);
  } finally {
    await dataSource.destroy();
  }
}
