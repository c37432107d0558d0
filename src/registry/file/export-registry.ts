import { stringify } from 'yaml';
import type { Database } from '../../platform/database/database.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';

/** The registry of the database as YAML (protocol §8.1), without secrets: only their hashes are stored. */
export async function exportRegistry(database: Database): Promise<string> {
  const lists: Record<string, object[]> = {};
  for (const { list, entity, toEntry } of REGISTRY_RESOURCES) {
    lists[list] = (await database.read(entity)).map((row) => toEntry(row));
  }
  return stringify(lists, { aliasDuplicateObjects: false });
}
