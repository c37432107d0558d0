import { randomUUID } from 'node:crypto';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { secretColumns, withRetainedFields } from '../entries/entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';
import type { StoredEntries } from './stored-entries.js';

/** One entry of a registry file and what applying it did. */
export interface AppliedEntry {
  resource: RegistryResource;
  /** As the operator reads it: `resource server`. */
  kind: string;
  /** The key of the registry file. */
  id: string;
  outcome: 'created' | 'changed' | 'left';
  /** The row as the file wants it, and its columns that changed. */
  row: ObjectLiteral;
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
 * Creates and changes the rows of a resource, and releases those that the file no longer lists; whether anything
 * changed.
 */
export async function applyRows(manager: EntityManager, listed: ListedRows): Promise<[AppliedEntry[], boolean]> {
  const existing = await manager.find(listed.resource.entity);
  const applied: AppliedEntry[] = [];
  for (const row of listed.rows) applied.push(await applyRow(manager, listed.resource, row, existing));
  const released = await releaseOthers(manager, listed, existing);
  return [applied, released > 0 || applied.some(({ outcome }) => outcome !== 'left')];
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
  const { entity, fileKey, columnsOnTokenEnd: columnsOfEnd } = resource;
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
  if (changes.length === 0) return { ...entry, changes, outcome: 'left' };
  const applied: AppliedEntry = { ...entry, changes, outcome: 'changed' };
  const changed = Object.fromEntries(changes.map((column) => [column, row[column]]));
  await manager.update(entity, { [key]: row[key] }, { ...changed, ...(endsTokens(applied) && columnsOfEnd) });
  return applied;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** From now on the admin API may change what the file no longer lists; returns the number of these rows. */
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
