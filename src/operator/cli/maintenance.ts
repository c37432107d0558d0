import { FeedStore } from '../../feed/feed-store.js';
import { Purge } from '../../identity/purge.js';
import { DATABASE_VARIABLES } from '../../platform/configuration/load-configuration.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

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

/** `revocation-feed restart`: each consumer of the feed reads the full list again (protocol §7.6). */
export async function revocationFeedCommand(
  [action, ...parameters]: string[],
  context: CommandContext,
): Promise<number> {
  if (action !== 'restart') throw new UsageError('revocation-feed: expected restart');
  expectParameters(parameters, 0);
  await context.withApplication((application) => application.get(FeedStore).renewHistory(), {
    variables: DATABASE_VARIABLES,
  });
  context.print('restarted\n');
  return 0;
}
