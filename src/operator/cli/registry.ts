import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { assertDatabaseExists, assertDatabaseHasContent } from '../../platform/configuration/database-url.js';
import { DATABASE_VARIABLES, loadConfiguration } from '../../platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../platform/database/data-source-options.js';
import { PendingMigrationsError } from '../../platform/database/database-errors.js';
import { connectWithRetry } from '../../platform/database/database-start.js';
import { hasPendingMigrations } from '../../platform/database/migrate.js';
import { commandLog, serviceLogger } from '../../platform/logging/log.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import type { Extension } from '../../token/extension.js';
import { exportRegistry } from '../registry/file/registry-export.js';
import { RegistryFile } from '../registry/file/registry-file.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

/** `registry apply [--dry-run] [--prune] FILE`, `registry check FILE` and `registry export`. */
export async function registryCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  if (action === 'apply') return applyFile(parameters, context);
  if (action === 'check') return checkFile(parameters, context);
  if (action !== 'export') throw new UsageError('registry: expected apply, check or export');
  expectParameters(parameters, 0);
  context.print(await exported(context.extension));
  return 0;
}

/** Reads without the application, which would migrate an embedded database and write rows at its start. */
async function exported({ migrations }: Extension): Promise<string> {
  const configuration = loadConfiguration(process.env, DATABASE_VARIABLES);
  assertDatabaseExists(configuration);
  await assertDatabaseHasContent(configuration);
  const { logger } = commandLog(configuration);
  Logger.overrideLogger(serviceLogger(logger)); // NestJS's own logger writes to stdout
  for (const warning of configuration.warnings) logger.warn(warning);
  const entities = ENTRY_KINDS.map(({ entity }) => entity);
  const dataSource = await connectWithRetry({ ...dataSourceOptions(configuration, migrations), entities }, 0);
  try {
    if (await hasPendingMigrations(dataSource)) throw new PendingMigrationsError();
    return await exportRegistry(dataSource.manager);
  } finally {
    await dataSource.destroy();
  }
}

/** A dry run prints only what would change, and ends with exit code 2 if something would. */
async function applyFile(parameters: string[], context: CommandContext): Promise<number> {
  const { path, isDryRun, prunes } = applyOptions(parameters);
  const work = (application: INestApplicationContext) =>
    application.get(RegistryFile).apply(path, { isDryRun, prunes });
  const options = { variables: DATABASE_VARIABLES, createsDatabase: !isDryRun, migrates: !isDryRun };
  const applied = await context.withApplication(work, options);
  const printed = isDryRun ? applied.filter(({ outcome }) => outcome !== 'unchanged') : applied;
  context.print(printed.map(({ outcome, kind, id }) => `${outcome}: ${kind} ${id}\n`).join(''));
  return isDryRun && printed.length > 0 ? 2 : 0;
}

function applyOptions(parameters: string[]): { path: string; isDryRun: boolean; prunes: boolean } {
  try {
    const flag = { type: 'boolean', default: false } as const;
    const options = { 'dry-run': flag, prune: flag };
    const { values, positionals } = parseArgs({ args: parameters, options, allowPositionals: true });
    expectParameters(positionals, 1);
    return { path: positionals[0] as string, isDryRun: values['dry-run'], prunes: values.prune };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** The application, which knows the grants and their settings, gets an empty folder for its database and keys. */
async function checkFile(parameters: string[], context: CommandContext): Promise<number> {
  expectParameters(parameters, 1);
  const [path] = parameters as [string];
  const folder = mkdtempSync(join(tmpdir(), 'registry-check-'));
  try {
    const work = (application: INestApplicationContext) => application.get(RegistryFile).check(path);
    const missing = await context.withApplication(work, { createsDatabase: true, folder });
    for (const each of missing) context.notify(`to be applied, the file needs more: ${each}\n`);
    context.print('the registry file is valid\n');
    return 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
