import type { EntityManager } from 'typeorm';
import { stringify } from 'yaml';
import { listOf, relationsOf } from '../../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../../registry/entries/organization.entry.js';
import { pagesOf } from '../../../registry/row-pages.js';
import { leavingOrganizations } from '../stored-entries.js';

/**
 * The registry as YAML (protocol §8.1), without secrets: only their hashes are stored. An organization that is being
 * off-boarded is left out with its clients and agents.
 */
export async function exportRegistry(manager: EntityManager): Promise<string> {
  const leavingIds = await leavingOrganizations(manager);
  const lists: Record<string, object[]> = {};
  for (const kind of ENTRY_KINDS) {
    const entries: object[] = [];
    lists[listOf(kind)] = entries;
    const options = { relations: relationsOf(kind) };
    for await (const rows of pagesOf(manager, kind.entity, kind.key.column, {}, options)) {
      const staying = rows.filter((row) => !leavingIds.has(kind === ORGANIZATIONS ? row.id : row.organizationId));
      entries.push(...staying.map(kind.toEntry));
    }
  }
  return stringify(lists, { aliasDuplicateObjects: false });
}
