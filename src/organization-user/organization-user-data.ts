import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import { CustomerDataParticipants, type CustomerTables } from '../identity/customer-data-participants.js';
import { Database } from '../platform/database/database.js';
import { writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { OrganizationUser } from './organization-user.entity.js';

/** The number of rows that one statement deletes. */
const ROWS_PER_DELETE = 1_000;

/** The number of linked ids that the operator sees. A user can sign in on any number of browsers. */
const MAX_LINKED_IDS = 200;

/** Deletes the users of erased customers, and retains the customers that still belong to a user. */
@Injectable()
export class OrganizationUserData implements CustomerTables {
  /** The hash of a guessable user id shows the id, but the operator has the database, and the organization has the id. */
  readonly tables = [
    {
      name: 'organization_user',
      find: `SELECT entity_id, organization_id, user_hash, customer_id, linked_by, linked_at FROM organization_user
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

  /** Deletes the external id of the customer. */
  async forgetIn(manager: EntityManager, entityId: string): Promise<void> {
    await manager.delete(OrganizationUser, { entityId });
  }

  /** Deletes the users whose customers are erased, and the links to the customers. */
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
    const where = { customerId, entityId: Not(customerId) };
    const options = { where, order: { linkedAt: 'ASC' }, take: MAX_LINKED_IDS } as const;
    return (await this.database.read(OrganizationUser, options)).map(({ entityId }) => entityId);
  }
}
