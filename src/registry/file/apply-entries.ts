import { randomUUID } from 'node:crypto';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { secretColumns, withRetainedFields } from '../entries/entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';
import type { StoredEntries } from './stored-entries.js';

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
}

/** The rows that a file lists for one resource. */
export interface ListedRows {
  resource: RegistryResource;
  rows: ObjectLiteral[];
}

/** The rows of a document. Hashes of passwords take long: they are computed here, before the transaction. */
export function rowsOf(document: RegistryDocument, stored: StoredEntries): Promise<ListedRows[]> {
  return Promise.all(
    REGISTRY_RESOURCES.map(async (resource) => {
      const { key, toRow } = resource;
      const rows = entriesIn(document, resource).map(async ([, entry]): Promise<ObjectLiteral> => {
        const current = stored.rowOf(resource, entry);
        const generated = key.isGenerated && { [key.column]: current?.[key.column] ?? randomUUID() };
        return { ...generated, ...toRow(entry, await secretColumns(resource, entry, current)) };
      });
      return { resource, rows: await Promise.all(rows) };
    }),
  );
}

/**
 * Creates and changes the rows of a resource, and releases rows that the file no longer lists. The boolean is whether
 * any row changed.
 */
export async function applyRows(manager: EntityManager, listed: ListedRows): Promise<[AppliedEntry[], boolean]> {
  const existing = await manager.find(listed.resource.entity);
  const applied: AppliedEntry[] = [];
  for (const row of listed.rows) applied.push(await applyRow(manager, listed.resource, row, existing));
  const released = await releaseOthers(manager, listed, existing);
  return [applied, released > 0 || applied.some(({ outcome }) => outcome !== 'unchanged')];
}

/** Whether the change of an entry ends its tokens. */
export function endsTokens({ resource: { tokensEndWith = {} }, outcome, changes }: AppliedEntry): boolean {
  return outcome === 'changed' && Object.values(tokensEndWith).some((column) => changes.includes(String(column)));
}

async function applyRow(
  manager: EntityManager,
  resource: RegistryResource,
  listed: ObjectLiteral,
  existing: ObjectLiteral[],
): Promise<AppliedEntry> {
  const { entity, fileKey, columnsOnTokenEnd } = resource;
  const { column: key } = fileKey;
  const row: ObjectLiteral = { ...listed, ownedByFile: true };
  const current = existing.find((other) => other[key] === row[key]);
  const entry = { resource, kind: resource.noun, id: String(row[key]), row };
  if (!current) {
    await manager.insert(entity, withRetainedFields(resource, row));
    return { ...entry, changes: Object.keys(row), outcome: 'created' };
  }
  const changes = Object.keys(row).filter(
    (column) => row[column] !== undefined && !isSame(row[column], current[column]),
  );
  if (changes.length === 0) return { ...entry, changes, outcome: 'unchanged' };
  const applied: AppliedEntry = { ...entry, changes, outcome: 'changed' };
  const changed = Object.fromEntries(changes.map((column) => [column, row[column]]));
  await manager.update(entity, { [key]: row[key] }, { ...changed, ...(endsTokens(applied) && columnsOnTokenEnd) });
  return applied;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Lets the admin API change the rows that the file no longer lists. Returns their number. */
async function releaseOthers(
  manager: EntityManager,
  { resource: { entity, fileKey }, rows }: ListedRows,
  existing: ObjectLiteral[],
): Promise<number> {
  const { column: key } = fileKey;
  const listed = new Set(rows.map((row) => row[key]));
  const others = existing.filter((row) => row.ownedByFile && !listed.has(row[key]));
  for (const row of others) await manager.update(entity, { [key]: row[key] }, { ownedByFile: false });
  return others.length;
}
