import { stringify } from 'yaml';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { EntityReader, type Select } from '../rows/entity-reader.js';

/** The registry of the database as YAML (protocol §8.1), without secrets: only their hashes are stored. */
export async function exportRegistry(select: Select): Promise<string> {
  const lists: Record<string, object[]> = {};
  for (const { list, entity, key, toEntry } of REGISTRY_RESOURCES) {
    const entries: object[] = [];
    lists[list] = entries;
    for await (const rows of new EntityReader(entity, key.column).inPages(select))
      for (const row of rows) entries.push(toEntry(row));
  }
  return stringify(lists, { aliasDuplicateObjects: false });
}
