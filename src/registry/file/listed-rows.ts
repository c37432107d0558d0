import { setImmediate as nextTick } from 'node:timers/promises';
import type { ObjectLiteral } from 'typeorm';
import { portionsOf } from '../../platform/database/value-list.js';
import { type EntriesOf, type Entry, secretColumns } from '../entry.js';
import { PASSWORD, type RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import type { StoredEntries } from '../stored-entries.js';
import { type ListedPassword, type PasswordGroups, passwordGroups, unchangedPasswords } from './password-groups.js';

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

type FindRow = (resource: RegistryResource, entry: Entry) => ObjectLiteral | undefined;

/** Entries whose secrets are hashed at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 100;

/**
 * The rows of a document. Hashes of passwords take long: they are computed here, before the transaction, and only for
 * passwords that may have changed.
 *
 * @param known the password groups of the file in force
 */
export async function rowsOf(
  entriesOf: EntriesOf,
  stored: StoredEntries,
  known: PasswordGroups | null,
): Promise<DocumentRows> {
  const storedPasswords = passwordsIn(entriesOf, (resource, entry) => stored.rowOf(resource, entry));
  const unchanged = await unchangedPasswords(storedPasswords, known);
  const rowOf = new Map<Entry, ObjectLiteral>();
  const addRow = async (resource: RegistryResource, entry: Entry) => {
    const isUnchanged = unchanged.has(passwordKey(resource, entry));
    const secret = await secretColumns(resource, entry, stored.rowOf(resource, entry), isUnchanged);
    rowOf.set(entry, resource.toRow(entry, secret));
  };
  const listed: ListedRows[] = [];
  for (const resource of REGISTRY_RESOURCES) {
    const entries = entriesOf(resource).map(([, entry]) => entry);
    for (const portion of portionsOf(entries, ENTRIES_PER_PORTION)) {
      await Promise.all(portion.map((entry) => addRow(resource, entry)));
      await nextTick();
    }
    listed.push({ resource, rows: entries.map((entry) => rowOf.get(entry) as ObjectLiteral) });
  }
  const newPasswords = passwordsIn(entriesOf, (_, entry) => rowOf.get(entry));
  return { listed, groups: await passwordGroups(newPasswords, known, unchanged) };
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
function passwordsIn(entriesOf: EntriesOf, findRow: FindRow): ListedPassword[] {
  return REGISTRY_RESOURCES.flatMap((resource) => {
    const { secret } = resource;
    if (secret?.kind !== PASSWORD) return [];
    return entriesOf(resource).flatMap(([, entry]) => {
      const password = entry[secret.field];
      const storedHash: unknown = findRow(resource, entry)?.[secret.column];
      if (typeof password !== 'string' || typeof storedHash !== 'string') return [];
      return [{ key: passwordKey(resource, entry), password, storedHash }];
    });
  });
}

function passwordKey({ list, fileKey }: RegistryResource, entry: Entry): string {
  return `${list}/${entry[fileKey.field]}`;
}
