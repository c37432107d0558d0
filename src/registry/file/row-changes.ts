import { randomUUID } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type EntityManager, In, type ObjectLiteral } from 'typeorm';
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
  /** The row before; `undefined` if the entry is created. */
  current: ObjectLiteral | undefined;
  endsTokens: boolean;
}

/** What applying a file does to the rows of one resource. */
export interface RowChanges {
  resource: RegistryResource;
  entries: ListedRow[];
  /** Rows that the file no longer lists. The admin API may change them from then on. */
  released: ObjectLiteral[];
}

/** Entries that are compared at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 250;

const MAX_ROWS_PER_STATEMENT = 200;
/** Far below `max_allowed_packet`, which is 16 MB by default in MariaDB. */
const MAX_CHARACTERS_PER_STATEMENT = 1_000_000;

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
  for (const [index, row] of rows.entries()) {
    const listed = { ...row, ownedByFile: !merge };
    entries.push(compareRow(resource, listed, stored.rowWithKey(resource, String(row[key]))));
    if (index % ENTRIES_PER_PORTION === 0) await nextTick();
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

/** Writes the rows that changed, hundreds of them in each statement. */
export async function writeChanges(manager: EntityManager, { resource, entries, released }: RowChanges): Promise<void> {
  const { entity, fileKey, columnsOnTokenEnd } = resource;
  const created = entries.filter(({ outcome }) => outcome === 'created');
  for (const values of inStatements(created.map(({ row }) => withRetainedFields(resource, row))))
    await manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false).execute();
  const changed = entries.filter(({ outcome }) => outcome === 'changed');
  const isRaised = ({ endsTokens }: ListedRow) => endsTokens && columnsOnTokenEnd !== undefined;
  for (const { row, changes } of changed.filter(isRaised)) {
    // one by one, because another transaction may raise the generation meanwhile
    const columns = Object.fromEntries(changes.map((column) => [column, row[column]]));
    await manager.update(entity, { [fileKey.column]: row[fileKey.column] }, { ...columns, ...columnsOnTokenEnd });
  }
  await updateRows(
    manager,
    resource,
    changed.filter((entry) => !isRaised(entry)),
  );
  for (const rows of inStatements(released)) {
    const keys = rows.map((row) => row[fileKey.column]);
    await manager.update(entity, { [fileKey.column]: In(keys) }, { ownedByFile: false });
  }
}

/** Updates the columns that changed in any of the rows. The other columns of a row may change meanwhile. */
async function updateRows(manager: EntityManager, { entity }: RegistryResource, changed: ListedRow[]): Promise<void> {
  const { columns } = manager.connection.getMetadata(entity);
  const names = columns.filter(({ propertyName }) => changed.some(({ changes }) => changes.includes(propertyName)));
  const primaryKey = columns.filter(({ isPrimary }) => isPrimary);
  const [updated, conflicting] = [names, primaryKey].map((some) => some.map(({ databaseName }) => databaseName));
  for (const values of inStatements(changed.map(wholeRow))) {
    const insert = manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false);
    // this never inserts: the rows were read under the lock on the registry, so none was deleted since
    await insert.orUpdate(updated ?? [], conflicting).execute();
  }
}

function compareRow(resource: RegistryResource, listed: ObjectLiteral, current: ObjectLiteral | undefined): ListedRow {
  const { key, fileKey, noun, tokensEndWith = {} } = resource;
  // the generated key is chosen only here, because another process may have created the row since the file was read
  const generated = key.isGenerated && { [key.column]: current?.[key.column] ?? randomUUID() };
  const row: ObjectLiteral = { ...generated, ...listed };
  const entry = { kind: noun, id: String(row[fileKey.column]), row, current };
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

function wholeRow({ row, current }: ListedRow): ObjectLiteral {
  return { ...current, ...Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)) };
}

/** Splits rows into statements of limited size. */
function* inStatements(rows: ObjectLiteral[]): Generator<ObjectLiteral[]> {
  let some: ObjectLiteral[] = [];
  let characters = 0;
  for (const row of rows) {
    const { length } = JSON.stringify(row);
    const isFull = some.length === MAX_ROWS_PER_STATEMENT || characters + length > MAX_CHARACTERS_PER_STATEMENT;
    if (isFull && some.length > 0) {
      yield some;
      [some, characters] = [[], 0];
    }
    some.push(row);
    characters += length;
  }
  if (some.length > 0) yield some;
}
