import type { EntityManager } from 'typeorm';
import { stringify } from 'yaml';
import { listOf } from '../../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../../registry/entries/entry-kinds.js';
import { pagesOf } from '../../../registry/row-pages.js';

/** The registry as YAML (protocol §8.1), without secrets: only their hashes are stored. */
export async function exportRegistry(manager: EntityManager): Promise<string> {
  const lists: Record<string, object[]> = {};
  for (const kind of ENTRY_KINDS) {
    const entries: object[] = [];
    lists[listOf(kind)] = entries;
    for await (const rows of pagesOf(manager, kind.entity, kind.key.column)) entries.push(...rows.map(kind.toEntry));
  }
  return stringify(lists, { aliasDuplicateObjects: false });
}
