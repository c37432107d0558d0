import { randomUUID } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ObjectLiteral } from 'typeorm';
import { portionsOf } from '../../platform/database/value-list.js';
import { withPauses } from '../../platform/with-pauses.js';
import { type EntriesOf, type Entry, isSameValue, secretColumns } from '../entry.js';
import type { EntryChange } from '../registry-transactions.js';
import { PASSWORD, type RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import type { StoredEntries } from '../stored-entries.js';
import { type ListedPassword, type PasswordGroups, passwordGroups, unchangedPasswords } from './password-groups.js';

/** Without generated keys. */
export interface ListedRows {
  resource: RegistryResource;
  rows: ObjectLiteral[];
}

export class StaleSecretsError extends Error {
  constructor() {
    super('another process changed the same secrets at the same time; apply the registry file again');
  }
}

type FindRow = (resource: RegistryResource, entry: Entry) => ObjectLiteral | undefined;

/** Entries whose secrets are hashed at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 100;

/** Hashes are computed before the transaction, because they take long. `known`: the groups of the file in force. */
export async function rowsOf(
  entriesOf: EntriesOf,
  stored: StoredEntries,
  known: PasswordGroups | null,
): Promise<{ listed: ListedRows[]; groups: PasswordGroups | null }> {
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

/** Hashes of one password differ by their salt: compared with a replaced hash, an equal password looks changed. */
export function usesStaleSecrets(listed: ListedRows[], before: StoredEntries, present: StoredEntries): boolean {
  return listed.some(({ resource, rows }) => {
    const { secret, fileKey } = resource;
    if (!secret) return false;
    const hashIn = (stored: StoredEntries, row: ObjectLiteral): unknown =>
      stored.rowWithKey(resource, String(row[fileKey.column]))?.[secret.column];
    return rows.some((row) => row[secret.column] !== undefined && hashIn(before, row) !== hashIn(present, row));
  });
}

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

export interface AppliedEntry {
  kind: string;
  id: string;
  outcome: 'created' | 'changed' | 'unchanged';
}

/** A merged file owns no entries and releases none (protocol §8.10). */
export async function compareRows(listed: ListedRows[], stored: StoredEntries, merge: boolean) {
  const entries: AppliedEntry[] = [];
  const changes: EntryChange[] = [];
  for (const { resource, rows } of listed) {
    const { noun, key, fileKey } = resource;
    const kept = new Set<string>();
    for await (const row of withPauses(rows)) {
      const id = String(row[fileKey.column]);
      kept.add(id);
      const change = changeOf(resource, { ...row, ownedByFile: !merge }, stored.rowWithKey(resource, id));
      entries.push({ kind: noun, id, outcome: change?.change ?? 'unchanged' });
      if (change) changes.push(change);
    }
    const released = merge ? [] : stored.ownedByFile(resource).filter((row) => !kept.has(row[fileKey.column]));
    for (const row of released) changes.push({ resource, key: row[key.column], change: 'released' });
  }
  return { entries, changes };
}

function changeOf(resource: RegistryResource, listed: ObjectLiteral, current: ObjectLiteral | undefined) {
  const { column, isGenerated } = resource.key;
  if (!current) {
    // the generated key is chosen only here, because another process may have created the row since the file was read
    const columns: ObjectLiteral = { ...(isGenerated && { [column]: randomUUID() }), ...listed };
    return { resource, key: String(columns[column]), change: 'created', columns } as const;
  }
  // only the columns that differ, because another transaction may change the others meanwhile
  const differing = Object.entries(listed).filter(
    ([name, value]) => value !== undefined && !isSameValue(value, current[name]),
  );
  if (differing.length === 0) return undefined;
  const fields = differing.map(([name]) => name);
  const endsTokens = Object.values(resource.tokensEndWith ?? {}).some((name) => fields.includes(String(name)));
  const columns = Object.fromEntries(differing);
  return { resource, key: String(current[column]), change: 'changed', columns, fields, endsTokens } as const;
}
