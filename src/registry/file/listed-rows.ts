import { setImmediate as nextTick } from 'node:timers/promises';
import type { ObjectLiteral } from 'typeorm';
import { portionsOf } from '../../platform/database/value-list.js';
import { EntityReader, type Reads } from '../entity-reader.js';
import { type Entry, secretColumns } from '../entry.js';
import { fileKeyOf, PASSWORD, type RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { type ListedPassword, type PasswordGroups, passwordGroups, unchangedPasswords } from './password-groups.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';

/** The rows that a file lists for one resource, in its order and without generated keys. */
export interface ListedRows {
  resource: RegistryResource;
  rows: ObjectLiteral[];
}

/** The rows of a document, and the password groups of its file as soon as these rows are stored. */
export interface DocumentRows {
  listed: ListedRows[];
  groups: PasswordGroups | null;
}

/** Another process has changed secrets since the secrets of a file were compared with their stored hashes. */
export class StaleSecretsError extends Error {
  constructor() {
    super('another process changed the same secrets at the same time; apply the registry file again');
  }
}

type FindRow = (resource: RegistryResource, entry: Entry, index: number) => ObjectLiteral | undefined;

/** Entries whose secrets are hashed at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 100;

/**
 * The rows of a document. Hashes of passwords take long: they are computed here, before the transaction, and only for
 * passwords that may have changed.
 *
 * @param known the password groups of the file in force
 */
export async function rowsOf(
  document: RegistryDocument,
  stored: StoredEntries,
  known: PasswordGroups | null,
): Promise<DocumentRows> {
  const unchanged = await unchangedPasswords(
    passwordsIn(document, (resource, entry) => stored.rowOf(resource, entry)),
    known,
  );
  const listed: ListedRows[] = [];
  for (const resource of REGISTRY_RESOURCES) {
    const rows: ObjectLiteral[] = [];
    for (const portion of portionsOf(entriesIn(document, resource), ENTRIES_PER_PORTION)) {
      rows.push(...(await Promise.all(portion.map(([, entry]) => rowOf(resource, entry)))));
      await nextTick();
    }
    listed.push({ resource, rows });
  }
  const rowAt: FindRow = (resource, _, index) => listed.find((each) => each.resource === resource)?.rows[index];
  return { listed, groups: await passwordGroups(passwordsIn(document, rowAt), known, unchanged) };

  async function rowOf(resource: RegistryResource, entry: Entry): Promise<ObjectLiteral> {
    const isUnchanged = unchanged.has(passwordKey(resource, entry));
    return resource.toRow(entry, await secretColumns(resource, entry, stored.rowOf(resource, entry), isUnchanged));
  }
}

/**
 * Whether the secrets of a file were compared with hashes that are no longer stored. Hashes of one password differ by
 * their salt, so that an equal password would then count as changed.
 *
 * @param before the entries that `rowsOf` has read
 */
export function usesStaleSecrets(listed: ListedRows[], before: StoredEntries, present: StoredEntries): boolean {
  return listed.some(({ resource, rows }) => {
    const { secret, fileKey } = resource;
    if (!secret) return false;
    const hashIn = (stored: StoredEntries, row: ObjectLiteral): unknown =>
      stored.rowWithKey(resource, String(row[fileKey.column]))?.[secret.column];
    return rows.some((row) => row[secret.column] !== undefined && hashIn(before, row) !== hashIn(present, row));
  });
}

/** The passwords of a document whose entries have a row. */
function passwordsIn(document: RegistryDocument, findRow: FindRow): ListedPassword[] {
  return REGISTRY_RESOURCES.flatMap((resource) => {
    const { secret } = resource;
    if (secret?.kind !== PASSWORD) return [];
    return entriesIn(document, resource).flatMap(([, entry], index) => {
      const password = entry[secret.field];
      const storedHash: unknown = findRow(resource, entry, index)?.[secret.column];
      if (typeof password !== 'string' || typeof storedHash !== 'string') return [];
      return [{ key: passwordKey(resource, entry), password, storedHash }];
    });
  });
}

function passwordKey({ list, fileKey }: RegistryResource, entry: Entry): string {
  return `${list}/${entry[fileKey.field]}`;
}

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
