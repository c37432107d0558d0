import type { Type } from '@nestjs/common';
import { type EntityManager, In, type ObjectLiteral } from 'typeorm';
import type { Database } from '../platform/database/database.js';
import { valueList } from '../platform/database/value-list.js';
import { pagesOf } from './row-pages.js';

/** An organization that is being erased. */
export interface ErasedOrganization {
  id: string;
  /** Locks its row in the transaction of a step. */
  lock(manager: EntityManager): Promise<void>;
}

interface RowsOfOrganization extends ObjectLiteral {
  id: string;
  organizationId: string | null;
}

/**
 * Deletes the rows of an organization from a table without an index on it: reads the table by its primary key, in steps.
 *
 * @param filter only rows that match it are deleted
 * @param deleteReferences deletes in the same transaction what refers to the rows
 * @returns the number of rows that each step deleted
 */
export async function* deleteRowsOf<Row extends RowsOfOrganization>(
  database: Database,
  entity: Type<Row>,
  organization: ErasedOrganization,
  filter: object = {},
  deleteReferences?: (manager: EntityManager, ids: string[]) => Promise<unknown>,
): AsyncGenerator<number, void> {
  const select = { id: true, organizationId: true };
  for await (const rows of pagesOf(database.manager, entity, 'id', filter, { select })) {
    const ids = rows.filter(({ organizationId }) => organizationId === organization.id).map(({ id }) => id);
    if (ids.length > 0)
      await database.transaction(async (manager) => {
        await organization.lock(manager);
        await deleteReferences?.(manager, valueList(ids));
        const deleted: object = { id: In(valueList(ids)) };
        await manager.delete(entity, deleted);
      });
    yield ids.length;
  }
}
