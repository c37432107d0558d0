import type { EntityManager } from 'typeorm';
import type { Database } from '../platform/database/database.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import { RegistryRevision } from './registry-revision.entity.js';

const READ_REVISION = selectStatement<[], EntityRow<RegistryRevision, 'revision' | 'complete_from'>>({
  columns: ['revision', 'complete_from'],
  from: 'registry_revision',
  batch: true,
});

/** `completeFrom`: from this revision on, the rows tell each change. */
export async function readRevision(database: Database): Promise<{ revision: number; completeFrom: number }> {
  const [row] = await database.select(READ_REVISION, []);
  return { revision: row?.revision ?? 0, completeFrom: row?.complete_from ?? 0 };
}

/** Admits one change at a time, on all processes, until the end of the transaction. */
export async function lockRevision(manager: EntityManager): Promise<void> {
  await manager.increment(RegistryRevision, { id: 1 }, 'revision', 0);
}

export async function raiseRevision(manager: EntityManager): Promise<number> {
  await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
  return (await manager.findOneByOrFail(RegistryRevision, { id: 1 })).revision;
}
