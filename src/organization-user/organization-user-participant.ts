import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import {
  type CustomerDataParticipant,
  CustomerDataParticipants,
  type FindOwnRows,
} from '../identity/customer-data-participants.js';
import { type ExportPage, exportedTable, exportPage } from '../identity/export-page.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { withIsoTimes } from '../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import type { OrganizationUser } from './organization-user.entity.js';

type UserRow = EntityRow<OrganizationUser, 'entity_id'>;

/** The number of rows that one statement deletes. */
const ROWS_PER_DELETE = 1_000;

const DELETE = writeStatement<[entityId: string, customerId: string]>(({ deleteInOrder }) =>
  deleteInOrder('organization_user', 'entity_id = ? OR customer_id = ?', 'entity_id', ROWS_PER_DELETE),
);

const DELETE_OWN = writeStatement<[entityId: string]>('DELETE FROM organization_user WHERE entity_id = ?');

const FIND_LINKED = selectStatement<[customerId: string, entityId: string], UserRow>(
  'SELECT entity_id FROM organization_user WHERE customer_id = ? AND entity_id <> ? ORDER BY linked_at',
);

/** The hash of a guessable user id shows the id, but the operator has the database, and the organization has the id. */
const EXPORTED_TABLE = exportedTable<EntityRow<OrganizationUser, 'linked_at'>>({
  name: 'organization_user',
  find: `SELECT entity_id, organization_id, user_hash, customer_id, linked_by, linked_at FROM organization_user
    WHERE entity_id = ? OR customer_id = ? ORDER BY entity_id`,
  shown: (row) => withIsoTimes(row, ['linked_at']),
});

/** Deletes the users of erased customers, and retains the customers that still belong to a user. */
@Injectable()
export class OrganizationUserParticipant implements CustomerDataParticipant {
  constructor(
    private readonly database: Database,
    participants: CustomerDataParticipants,
  ) {
    participants.add(this);
  }

  readonly ownRows: FindOwnRows[] = [
    (list) => `SELECT entity_id FROM organization_user WHERE entity_id IN (${list})`,
    (list) => `SELECT customer_id AS entity_id FROM organization_user WHERE customer_id IN (${list})`,
  ];

  /** Deletes the external id of the customer. */
  async forgetIn(manager: EntityManager, entityId: string): Promise<void> {
    await writeIn(manager, DELETE_OWN, [entityId]);
  }

  /** Deletes the user whose customer is erased, and the links to the customer. */
  async onErase(entityId: string): Promise<void> {
    let deleted = ROWS_PER_DELETE;
    while (deleted === ROWS_PER_DELETE) deleted = await this.database.executeIdempotent(DELETE, [entityId, entityId]);
  }

  async mustRetain(entityIds: string[]): Promise<string[]> {
    const found: string[] = [];
    for (const portion of portionsOf(entityIds)) {
      const list = valueList(portion);
      const findUsers = selectStatement<string[], UserRow>(`SELECT entity_id FROM organization_user
        WHERE entity_id IN (${placeholdersFor(list)}) AND user_hash IS NOT NULL`);
      found.push(...(await this.database.select(findUsers, list)).map(({ entity_id }) => entity_id));
    }
    return found;
  }

  async linkedIds(entityId: string): Promise<string[]> {
    const rows = await this.database.select(FIND_LINKED, [entityId, entityId]);
    return rows.map(({ entity_id }) => entity_id);
  }

  exportRows(entityId: string, after?: string): Promise<ExportPage> {
    return exportPage(this.database, [EXPORTED_TABLE], entityId, after);
  }
}
