import { randomUUID } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import type { RegistryResource } from '../resources/registry-resource.js';
import type { ListedRows } from './listed-rows.js';
import type { StoredEntries } from './stored-entries.js';
import { insertRows, releaseRows, updateRows } from './write-rows.js';

/** One entry of a registry file, and the result of applying it. */
export interface AppliedEntry {
  resource: RegistryResource;
  /** The kind of entry in messages for the operator: `resource server`. */
  kind: string;
  /** The key of the registry file. */
  id: string;
  outcome: 'created' | 'changed' | 'unchanged';
  /** The row with the values of the file. */
  row: ObjectLiteral;
  /** The columns that changed. */
  changes: string[];
  /** The row before; `undefined` if the entry is created. */
  current: ObjectLiteral | undefined;
}

/** What applying a file does to the rows of one resource. */
export interface RowChanges {
  resource: RegistryResource;
  entries: AppliedEntry[];
  /** Rows that the file no longer lists. The admin API may change them from then on. */
  released: ObjectLiteral[];
}

/** Entries that are compared at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 250;

/**
 * Compares the rows of a file with the stored rows. A merged file owns no entries and releases none (protocol §8.10).
 */
export async function compareRows(
  { resource, rows }: ListedRows,
  stored: StoredEntries,
  { merge }: { merge: boolean },
): Promise<RowChanges> {
  const { column: key } = resource.fileKey;
  const entries: AppliedEntry[] = [];
  for (const [index, row] of rows.entries()) {
    const listed = { ...row, ownedByFile: !merge };
    entries.push(compareRow(resource, listed, stored.rowWithKey(resource, String(row[key]))));
    if (index % ENTRIES_PER_PORTION === 0) await nextTick();
  }
  const kept = new Set(rows.map((row) => row[key]));
  const released = merge ? [] : stored.ownedByFile(resource).filter((row) => !kept.has(row[key]));
  return { resource, entries, released };
}

/** Writes the rows that changed, hundreds of them in each statement. */
export async function writeChanges(manager: EntityManager, { resource, entries, released }: RowChanges): Promise<void> {
  const created = entries.filter(({ outcome }) => outcome === 'created').map(({ row }) => row);
  await insertRows(manager, resource, created);
  const changed = entries.flatMap((entry) => {
    const { outcome, current } = entry;
    return outcome === 'changed' && current ? [{ ...entry, current, endsTokens: endsTokens(entry) }] : [];
  });
  await updateRows(manager, resource, changed);
  await releaseRows(manager, resource, released);
}

/** The keys of the admin API of the entries that were created, changed or released. */
export function changedKeys({ resource, entries, released }: RowChanges): string[] {
  const changed = entries.filter(({ outcome }) => outcome !== 'unchanged').map(({ row }) => row);
  return [...changed, ...released].map((row) => String(row[resource.key.column]));
}

/** Whether the change of an entry ends its tokens. */
export function endsTokens({ resource: { tokensEndWith = {} }, outcome, changes }: AppliedEntry): boolean {
  return outcome === 'changed' && Object.values(tokensEndWith).some((column) => changes.includes(String(column)));
}

/** The result for an entry whose row has the values of the file already. */
export function unchangedEntry(resource: RegistryResource, row: ObjectLiteral): AppliedEntry {
  const id = String(row[resource.fileKey.column]);
  return { resource, kind: resource.noun, id, row, current: row, changes: [], outcome: 'unchanged' };
}

function compareRow(
  resource: RegistryResource,
  listed: ObjectLiteral,
  current: ObjectLiteral | undefined,
): AppliedEntry {
  const { key, fileKey, noun } = resource;
  // the generated key is chosen only here, because another process may have created the row since the file was read
  const generated = key.isGenerated && { [key.column]: current?.[key.column] ?? randomUUID() };
  const row: ObjectLiteral = { ...generated, ...listed };
  const entry = { resource, kind: noun, id: String(row[fileKey.column]), row, current };
  if (!current) return { ...entry, changes: Object.keys(row), outcome: 'created' };
  const changes = Object.keys(row).filter(
    (column) => row[column] !== undefined && !isSame(row[column], current[column]),
  );
  return { ...entry, changes, outcome: changes.length === 0 ? 'unchanged' : 'changed' };
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
