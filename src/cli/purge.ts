import { Purge } from '../purge/purge.js';
import type { CommandContext } from './command-context.js';
import { expectParameters } from './usage-error.js';

/** `purge`: deletes what has expired; exit code 1 when another process is at it. */
export async function purgeCommand(parameters: string[], context: CommandContext): Promise<number> {
  expectParameters(parameters, 0);
  const purged = await context.withApplication((application) => application.get(Purge).run());
  if (!purged) throw new Error('another process is purging');
  context.print(
    Object.entries(purged)
      .map(([table, rows]) => `${table}: ${rows}\n`)
      .join(''),
  );
  return 0;
}
