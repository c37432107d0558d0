import type { ObjectLiteral } from 'typeorm';
import { EntityReader, type Reads } from '../entity-reader.js';
import { type Entry, fileKeyOf } from '../entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';

/**
 * The rows of the database that a registry file concerns, by the keys of the file: those that the file lists or refers
 * to, and those that belong to the file.
 */
export class StoredEntries {
  private constructor(
    /** The revision of the registry before the rows were read. */
    readonly revision: number,
    private readonly rows: Map<RegistryResource, Map<string, ObjectLiteral>>,
  ) {}

  static async read(revision: number, document: RegistryDocument, reads: Reads): Promise<StoredEntries> {
    const rows = new Map<RegistryResource, Map<string, ObjectLiteral>>();
    for (const resource of REGISTRY_RESOURCES) {
      const { entity, fileKey } = resource;
      const reader = new EntityReader(entity, fileKey.column);
      const found = new Map<string, ObjectLiteral>();
      rows.set(resource, found);
      const add = (page: ObjectLiteral[]) => page.forEach((row) => void found.set(row[fileKey.column], row));
      for await (const page of reader.inPages(reads, 'ownedByFile')) add(page);
      const missing = [...concernedKeys(resource, document)].filter((key) => !found.has(key));
      for await (const page of reader.withKeys(reads, missing)) add(page);
    }
    return new StoredEntries(revision, rows);
  }

  rowOf(resource: RegistryResource, entry: Entry): ObjectLiteral | undefined {
    return this.rowWithKey(resource, fileKeyOf(resource, entry) ?? '');
  }

  rowWithKey(resource: RegistryResource, key: string): ObjectLiteral | undefined {
    return this.rows.get(resource)?.get(key);
  }

  /** The rows of a resource that belong to the file. */
  ownedByFile(resource: RegistryResource): ObjectLiteral[] {
    return [...(this.rows.get(resource)?.values() ?? [])].filter(({ ownedByFile }) => ownedByFile);
  }
}

/** The keys of the entries that a document lists or refers to. */
function concernedKeys(resource: RegistryResource, document: RegistryDocument): Set<string> {
  const keys: unknown[] = entriesIn(document, resource).map(([, entry]) => fileKeyOf(resource, entry));
  for (const other of REGISTRY_RESOURCES) {
    for (const { field, resource: target } of other.references) {
      if (target === resource) keys.push(...entriesIn(document, other).map(([, entry]) => entry[field]));
    }
  }
  return new Set(keys.filter((key): key is string => typeof key === 'string' && key !== ''));
}
