import type { EntityManager, ObjectLiteral } from 'typeorm';
import type { EntriesOf, Entry } from './entry.js';
import { fileKeyOf, type RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';
import { rowsWithKeys } from './row-pages.js';

export class StoredEntries {
  private constructor(private readonly rows: Map<RegistryResource, Map<string, ObjectLiteral>>) {}

  /** Also reads the rows that the entries refer to. */
  static async read(manager: EntityManager, entriesOf: EntriesOf): Promise<StoredEntries> {
    const rows = new Map<RegistryResource, Map<string, ObjectLiteral>>();
    for (const resource of REGISTRY_RESOURCES) {
      const { entity } = resource;
      const { column } = resource.fileKey;
      const found = new Map<string, ObjectLiteral>();
      rows.set(resource, found);
      for await (const page of rowsWithKeys(manager, entity, column, concernedKeys(resource, entriesOf)))
        for (const row of page) found.set(row[column], row);
    }
    return new StoredEntries(rows);
  }

  rowOf(resource: RegistryResource, entry: Entry): ObjectLiteral | undefined {
    return this.rowWithKey(resource, fileKeyOf(resource, entry) ?? '');
  }

  rowWithKey(resource: RegistryResource, key: string): ObjectLiteral | undefined {
    return this.rows.get(resource)?.get(key);
  }
}

/** The keys of the entries, and of the entries of a resource that they refer to. */
function concernedKeys(resource: RegistryResource, entriesOf: EntriesOf): Set<string> {
  const keys: unknown[] = entriesOf(resource).map(([, entry]) => fileKeyOf(resource, entry));
  for (const other of REGISTRY_RESOURCES) {
    for (const { field, resource: target } of other.references) {
      if (target === resource) keys.push(...entriesOf(other).map(([, entry]) => entry[field]));
    }
  }
  return new Set(keys.filter((key): key is string => typeof key === 'string' && key !== ''));
}
