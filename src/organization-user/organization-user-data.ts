import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import {
  CustomerDataParticipants,
  type CustomerTables,
  MAX_LINKED_IDS,
} from '../identity/customer-data-participants.js';
import { Database } from '../platform/database/database.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { OrganizationUser } from './organization-user.entity.js';

/** The number of rows that one statement deletes. */
const ROWS_PER_DELETE = 1_000;

const FIND_LINKED_IDS = selectStatement<[customerId: string, itself: string], { entity_id: string }>(
  `SELECT entity_id FROM organization_user WHERE customer_id = ? AND entity_id <> ?
    ORDER BY linked_at LIMIT ${MAX_LINKED_IDS}`,
);

/** Deletes the users of erased customers, and retains the customers that still belong to a user. */
@Injectable()
export class OrganizationUserData implements CustomerTables {
  /** Without the hash of the user's id, from which a guessable id can be found. */
  readonly tables = [
    {
      name: 'organization_user',
      find: `SELECT entity_id, organization_id, customer_id, linked_by, linked_at FROM organization_user
        WHERE entity_id = ? OR customer_id = ? ORDER BY entity_id`,
      times: ['linked_at'],
    },
  ];
  readonly deletedRows = ['organization_user WHERE entity_id = ?', 'organization_user WHERE customer_id = ?'];

  constructor(
    private readonly database: Database,
    participants: CustomerDataParticipants,
  ) {
    participants.own.push(this);
  }

  async forgetIn(manager: EntityManager, entityId: string): Promise<void> {
    await manager.delete(OrganizationUser, { entityId });
  }

  async deleteRows(entityIds: string[]): Promise<void> {
    const list = valueList(entityIds);
    const ids = placeholdersFor(list);
    const deleteSome = writeStatement<string[]>(({ deleteInOrder }) =>
      deleteInOrder(
        'organization_user',
        `entity_id IN (${ids}) OR customer_id IN (${ids})`,
        'entity_id',
        ROWS_PER_DELETE,
      ),
    );
    let deleted = ROWS_PER_DELETE;
    while (deleted === ROWS_PER_DELETE) deleted = await this.database.executeIdempotent(deleteSome, [...list, ...list]);
  }

  async mustRetain(entityIds: string[]): Promise<string[]> {
    const where = { entityId: In(valueList(entityIds)), userHash: Not(IsNull()) };
    return (await this.database.read(OrganizationUser, { where })).map(({ entityId }) => entityId);
  }

  async linkedIds(customerId: string): Promise<string[]> {
    return (await this.database.select(FIND_LINKED_IDS, [customerId, customerId])).map(({ entity_id }) => entity_id);
  }
}
