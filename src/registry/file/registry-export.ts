import type { EntityManager } from 'typeorm';
import { stringify } from 'yaml';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { pagesOf } from '../row-pages.js';

/** The registry as YAML (protocol §8.1), without secrets: only their hashes are stored. */
export async function exportRegistry(manager: EntityManager): Promise<string> {
  const lists: Record<string, object[]> = {};
  for (const { list, entity, key, toEntry } of REGISTRY_RESOURCES) {
    const entries: object[] = [];
    lists[list] = entries;
    for await (const rows of pagesOf(manager, entity, key.column)) for (const row of rows) entries.push(toEntry(row));
  }
  return stringify(lists, { aliasDuplicateObjects: false });
}
