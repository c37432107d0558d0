import type { Organization } from '../organization.entity.js';
import type { RegistryDocument } from './registry-document.js';

/** Paths that one warning names. */
const MAX_NAMED_PATHS = 20;

/** What an operator should change in a file that is accepted; it names paths, and no values. */
export function warningsOf(document: RegistryDocument, stored: Organization[]): string[] {
  const open = new Set(stored.filter(({ publicClients }) => publicClients === 'all').map(({ id }) => id));
  const silent = pathsOf(
    document.organizations,
    'organizations',
    ({ id, public_clients }) => public_clients === undefined && open.has(id),
  );
  return silent.length === 0
    ? []
    : [
        `${named(silent)}: without public_clients, each goes on admitting every public client; say all, or a list of client ids`,
      ];
}

function pathsOf<Entry>(entries: Entry[], list: string, matches: (entry: Entry) => boolean): string[] {
  return entries.flatMap((entry, index) => (matches(entry) ? [`${list}[${index}]`] : []));
}

function named(paths: string[]): string {
  const rest = paths.length - MAX_NAMED_PATHS;
  return paths.slice(0, MAX_NAMED_PATHS).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
