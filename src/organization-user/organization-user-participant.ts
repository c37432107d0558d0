import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import {
  type CustomerDataParticipant,
  CustomerDataParticipants,
  type FindOwnRows,
} from '../identity/customer-data-participants.js';
import { type ExportPage, exportedTable, exportPage } from '../identity/export-page.js';
import { Database } from '../platform/database/database.js';
import { withIsoTimes } from '../platform/database/sql-dialect.js';
import { type EntityRow, writeStatement } from '../platform/database/statement.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { OrganizationUser } from './organization-user.entity.js';

/** The number of rows that one statement deletes. */
const ROWS_PER_DELETE = 1_000;

/** The number of linked ids that the operator sees. A user can sign in on any number of browsers. */
const MAX_LINKED_IDS = 200;

const DELETE = writeStatement<[entityId: string, customerId: string]>(({ deleteInOrder }) =>
  deleteInOrder('organization_user', 'entity_id = ? OR customer_id = ?', 'entity_id', ROWS_PER_DELETE),
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
    await manager.delete(OrganizationUser, { entityId });
  }

  /** Deletes the user whose customer is erased, and the links to the customer. */
  async onErase(entityId: string): Promise<void> {
    let deleted = ROWS_PER_DELETE;
    while (deleted === ROWS_PER_DELETE) deleted = await this.database.executeIdempotent(DELETE, [entityId, entityId]);
  }

  async mustRetain(entityIds: string[]): Promise<string[]> {
    const found: OrganizationUser[] = [];
    for (const portion of portionsOf(entityIds)) {
      const where = { entityId: In(valueList(portion)), userHash: Not(IsNull()) };
      found.push(...(await this.database.read(OrganizationUser, { where })));
    }
    return found.map(({ entityId }) => entityId);
  }

  async linkedIds(customerId: string): Promise<string[]> {
    const where = { customerId, entityId: Not(customerId) };
    const rows = await this.database.read(OrganizationUser, {
      where,
      order: { linkedAt: 'ASC' },
      take: MAX_LINKED_IDS,
    });
    return rows.map(({ entityId }) => entityId);
  }

  exportRows(entityId: string, after?: string): Promise<ExportPage> {
    return exportPage(this.database, [EXPORTED_TABLE], entityId, after);
  }
}
