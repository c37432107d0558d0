import { FeedHistory } from '../access-token/feed/feed-history.js';
import { DATABASE_VARIABLES } from '../platform/configuration/load-configuration.js';
import type { CommandContext } from './command-context.js';
import { expectParameters, UsageError } from './usage-error.js';

/** `revocation-feed restart`: each consumer of the feed reads the full list again (protocol §7.6). */
export async function revocationFeedCommand(
  [action, ...parameters]: string[],
  context: CommandContext,
): Promise<number> {
  if (action !== 'restart') throw new UsageError('revocation-feed: expected restart');
  expectParameters(parameters, 0);
  await context.withApplication((application) => application.get(FeedHistory).renewAlways(), {
    variables: DATABASE_VARIABLES,
  });
  context.print('restarted\n');
  return 0;
}
