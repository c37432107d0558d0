import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DATABASE_VARIABLES, loadConfiguration } from '../platform/configuration/load-configuration.js';
import { connectWithRetry } from '../platform/database/connect-with-retry.js';
import { dataSourceOptions } from '../platform/database/data-source-options.js';
import { type CommandContext, expectParameters } from './command-context.js';
import { assertDatabaseExists } from './existing-database.js';

/**
 * `backup FILE` copies the embedded database. The service may run and write meanwhile: the copy has the state of one
 * moment.
 */
export async function backupCommand(parameters: string[], { print }: CommandContext): Promise<number> {
  expectParameters(parameters, 1);
  const [file] = parameters as [string];
  const configuration = loadConfiguration(process.env, DATABASE_VARIABLES);
  if (!configuration.embedded)
    throw new Error('backup copies an embedded SQLite database; use the tools of your database server for others');
  assertDatabaseExists(configuration);
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
