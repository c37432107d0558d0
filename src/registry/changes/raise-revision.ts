import type { EntityManager } from 'typeorm';
import { RegistryRevision } from '../registry-revision.entity.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { RegistryChange } from './registry-change.entity.js';

/** An entry that was created, changed or deleted. */
export interface ChangedEntry {
  resource: RegistryResource;
  /** The key of the admin API. */
  key: string;
}

/** A process that was away for longer reads the whole registry. */
const RETENTION_MS = 86_400_000;

/**
 * A revision with more changes gets no rows in the log. Other processes then read the whole registry, which is not
 * slower than reading so many entries by their keys.
 */
const MAX_LOGGED_CHANGES = 20_000;

const ROWS_PER_INSERT = 500;

/** Locks the revision, so that one transaction at a time changes the registry, on all processes. */
export async function lockRevision(manager: EntityManager): Promise<void> {
  await manager.increment(RegistryRevision, { id: 1 }, 'revision', 0);
}

/**
 * Raises the revision and logs the changed entries. The transaction must hold the lock on the revision.
 *
 * @returns the new revision
 */
export async function raiseRevision(manager: EntityManager, changes: ChangedEntry[], now: number): Promise<number> {
  await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
  const revision = await currentRevision(manager);
  if (changes.length > MAX_LOGGED_CHANGES) return revision;
  const expiresAt = new Date(now + RETENTION_MS);
  const rows = changes.map(({ resource, key }) => ({ revision, resource: resource.list, entryKey: key, expiresAt }));
  for (let first = 0; first < rows.length; first += ROWS_PER_INSERT) {
    const values = rows.slice(first, first + ROWS_PER_INSERT);
    await manager.createQueryBuilder().insert().into(RegistryChange).values(values).updateEntity(false).execute();
  }
  return revision;
}

export async function currentRevision(manager: EntityManager): Promise<number> {
  return (await manager.findOneByOrFail(RegistryRevision, { id: 1 })).revision;
}
