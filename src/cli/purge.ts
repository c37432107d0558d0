import type { Extension } from '../extension.js';
import { Purge } from '../purge/purge.js';
import { withApplication } from './application.js';
import { expectParameters } from './usage-error.js';

/** `purge`: deletes what has expired; exit code 1 when another process is at it. */
export async function purgeCommand(parameters: string[], extension: Extension): Promise<number> {
  expectParameters(parameters, 0);
  const purged = await withApplication(extension, (application) => application.get(Purge).run());
  if (!purged) throw new Error('another process is purging');
  process.stdout.write(
    Object.entries(purged)
      .map(([table, rows]) => `${table}: ${rows}\n`)
      .join(''),
  );
  return 0;
}
