import type { ObjectLiteral } from 'typeorm';
import type { Database } from '../../platform/database/database.js';
import { type Entry, fileKeyOf } from '../entries/entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';

/** The registry rows of the database, found by the keys of the registry file. */
export class StoredEntries {
  private constructor(private readonly rows: Map<RegistryResource, Map<unknown, ObjectLiteral>>) {}

  static async read(database: Database): Promise<StoredEntries> {
    const rows = new Map<RegistryResource, Map<unknown, ObjectLiteral>>();
    for (const resource of REGISTRY_RESOURCES) {
      const { entity, fileKey } = resource;
      rows.set(resource, new Map((await database.read(entity)).map((row) => [row[fileKey.column], row])));
    }
    return new StoredEntries(rows);
  }

  has(resource: RegistryResource, key: string): boolean {
    return this.rows.get(resource)?.has(key) ?? false;
  }

  rowOf(resource: RegistryResource, entry: Entry): ObjectLiteral | undefined {
    return this.rows.get(resource)?.get(fileKeyOf(resource, entry));
  }
}
