import type { Organization } from '../organization.entity.js';
import { MIN_SECRET_LENGTH } from './entry-rules.js';
import type { RegistryDocument } from './registry-document.js';
import { isShortSecret } from './short-secrets.js';

/** Paths that one warning names. */
const MAX_NAMED_PATHS = 20;

/** What an operator should change in a file that is accepted; it names paths, and no values. */
export function warningsOf(document: RegistryDocument, stored: Organization[]): string[] {
  const open = new Set(stored.filter(({ publicClients }) => publicClients === 'all').map(({ id }) => id));
  const silent = pathsOf(
    document.organizations,
    ({ id, public_clients }) => public_clients === undefined && open.has(id),
    (index) => `organizations[${index}]`,
  );
  const short = [
    ...pathsOf(
      document.clients,
      ({ client_secret }) => isShortSecret(client_secret),
      (index) => `clients[${index}].client_secret`,
    ),
    ...pathsOf(
      document.resource_servers,
      ({ secret }) => isShortSecret(secret),
      (index) => `resource_servers[${index}].secret`,
    ),
  ];
  return [
    ...warning(
      silent,
      'without public_clients, each goes on admitting every public client; say all, or a list of client ids',
    ),
    ...warning(short, `shorter than ${MIN_SECRET_LENGTH} characters, accepted because it has not changed; replace it`),
  ];
}

function pathsOf<Entry>(
  entries: Entry[],
  matches: (entry: Entry) => boolean,
  path: (index: number) => string,
): string[] {
  return entries.flatMap((entry, index) => (matches(entry) ? [path(index)] : []));
}

function warning(paths: string[], rule: string): string[] {
  if (paths.length === 0) return [];
  const more = paths.length - MAX_NAMED_PATHS;
  return [`${paths.slice(0, MAX_NAMED_PATHS).join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${rule}`];
}
