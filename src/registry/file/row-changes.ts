import { randomUUID } from 'node:crypto';
import { type EntityManager, In, type ObjectLiteral } from 'typeorm';
import { portionsOf } from '../../platform/database/value-list.js';
import { withPauses } from '../../platform/with-pauses.js';
import { withRetainedFields } from '../entry.js';
import type { EntryChange } from '../registry-transactions.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import type { ListedRows, StoredEntries } from './listed-rows.js';

/** One entry of a registry file, and the result of applying it. */
export interface AppliedEntry {
  /** The kind of entry in messages for the operator: `resource server`. */
  kind: string;
  /** The key of the registry file. */
  id: string;
  outcome: 'created' | 'changed' | 'unchanged';
}

/** The row of one entry with the values of the file. */
interface ListedRow extends AppliedEntry {
  row: ObjectLiteral;
  /** The columns that changed. */
  changes: string[];
  endsTokens: boolean;
}

/** What applying a file does to the rows of one resource. */
export interface RowChanges {
  resource: RegistryResource;
  entries: ListedRow[];
  /** Rows that the file no longer lists. The admin API may change them from then on. */
  released: ObjectLiteral[];
}

/** A row of a client has at most 5 lists of 64 KB. The statement is below `max_allowed_packet`, 16 MB in MariaDB. */
const ROWS_PER_INSERT = 40;

/**
 * Compares the rows of a file with the stored rows. A merged file owns no entries and releases none (protocol §8.10).
 */
export async function compareRows(
  { resource, rows }: ListedRows,
  stored: StoredEntries,
  merge: boolean,
): Promise<RowChanges> {
  const { column: key } = resource.fileKey;
  const entries: ListedRow[] = [];
  for await (const row of withPauses(rows)) {
    const listed = { ...row, ownedByFile: !merge };
    entries.push(compareRow(resource, listed, stored.rowWithKey(resource, String(row[key]))));
  }
  const kept = new Set(rows.map((row) => row[key]));
  const released = merge ? [] : stored.ownedByFile(resource).filter((row) => !kept.has(row[key]));
  return { resource, entries, released };
}

/** The changes for the log of the registry, for the audit and for the tokens that end. */
export function entryChanges({ resource, entries, released }: RowChanges): EntryChange[] {
  const keyOf = (row: ObjectLiteral) => String(row[resource.key.column]);
  const changed = entries.flatMap(({ row, outcome, changes, endsTokens }): EntryChange[] => {
    if (outcome === 'unchanged') return [];
    const fields = outcome === 'changed' ? changes : [];
    return [{ resource, key: keyOf(row), change: outcome, fields, endsTokens }];
  });
  const given = released.map((row): EntryChange => {
    return { resource, key: keyOf(row), change: 'released', endsTokens: false };
  });
  return [...changed, ...given];
}

export async function writeChanges(manager: EntityManager, { resource, entries, released }: RowChanges): Promise<void> {
  const { entity, fileKey, columnsOnTokenEnd } = resource;
  const created = entries.filter(({ outcome }) => outcome === 'created');
  const rows = created.map(({ row }) => withRetainedFields(resource, row));
  for (const values of portionsOf(rows, ROWS_PER_INSERT))
    await manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false).execute();
  for (const { row, changes, endsTokens } of entries.filter(({ outcome }) => outcome === 'changed')) {
    // only the columns that changed, because another transaction may change the others meanwhile
    const columns = Object.fromEntries(changes.map((column) => [column, row[column]]));
    const where = { [fileKey.column]: row[fileKey.column] };
    await manager.update(entity, where, { ...columns, ...(endsTokens && columnsOnTokenEnd) });
  }
  for (const some of portionsOf(released)) {
    const keys = some.map((row) => row[fileKey.column]);
    await manager.update(entity, { [fileKey.column]: In(keys) }, { ownedByFile: false });
  }
}

function compareRow(resource: RegistryResource, listed: ObjectLiteral, current: ObjectLiteral | undefined): ListedRow {
  const { key, fileKey, noun, tokensEndWith = {} } = resource;
  // the generated key is chosen only here, because another process may have created the row since the file was read
  const generated = key.isGenerated && { [key.column]: current?.[key.column] ?? randomUUID() };
  const row: ObjectLiteral = { ...generated, ...listed };
  const entry = { kind: noun, id: String(row[fileKey.column]), row };
  if (!current) return { ...entry, changes: [], outcome: 'created', endsTokens: false };
  const changes = Object.keys(row).filter(
    (column) => row[column] !== undefined && !isSame(row[column], current[column]),
  );
  const endsTokens = Object.values(tokensEndWith).some((column) => changes.includes(String(column)));
  return { ...entry, changes, outcome: changes.length === 0 ? 'unchanged' : 'changed', endsTokens };
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
