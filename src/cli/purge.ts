import { DATABASE_VARIABLES } from '../platform/configuration/load-configuration.js';
import { Purge } from '../purge/purge.js';
import type { CommandContext } from './command-context.js';
import { expectParameters } from './usage-error.js';

/** `purge` deletes expired rows. If another process is purging, the exit code is 1. */
export async function purgeCommand(parameters: string[], context: CommandContext): Promise<number> {
  expectParameters(parameters, 0);
  const purged = await context.withApplication((application) => application.get(Purge).run(), {
    variables: DATABASE_VARIABLES,
  });
  if (!purged) throw new Error('another process is purging');
  context.print(
    Object.entries(purged)
      .map(([table, rows]) => `${table}: ${rows}\n`)
      .join(''),
  );
  return 0;
}
