import { Injectable } from '@nestjs/common';
import {
  type CustomerKeeper,
  CustomerKeepers,
  Database,
  type EntityRow,
  selectStatement,
  writeStatement,
} from '../../public/grant.js';
import type { OrganizationUser } from './organization-user.entity.js';

type UserRow = EntityRow<OrganizationUser, 'entity_id'>;

const DELETE = writeStatement<[entityId: string, customerId: string]>(
  'DELETE FROM organization_user WHERE entity_id = ? OR customer_id = ?',
);

const FIND_LINKED = selectStatement<[customerId: string, entityId: string], UserRow>(
  'SELECT entity_id FROM organization_user WHERE customer_id = ? AND entity_id <> ? ORDER BY linked_at',
);

/** What is kept of users goes with their customers, and keeps their customers from going with a browser. */
@Injectable()
export class OrganizationUserKeeper implements CustomerKeeper {
  constructor(
    private readonly database: Database,
    keepers: CustomerKeepers,
  ) {
    keepers.add(this);
  }

  /** The user is nobody's customer any more, or a browser is not known as having been it. */
  async forget(entityId: string): Promise<void> {
    await this.database.executeIdempotent(DELETE, [entityId, entityId]);
  }

  async kept(entityIds: string[]): Promise<string[]> {
    const findUsers = selectStatement<string[], UserRow>(`SELECT entity_id FROM organization_user
      WHERE entity_id IN (${entityIds.map(() => '?').join()}) AND user_hash IS NOT NULL`);
    const rows = await this.database.select(findUsers, entityIds);
    return rows.map(({ entity_id }) => entity_id);
  }

  async linkedIds(entityId: string): Promise<string[]> {
    const rows = await this.database.select(FIND_LINKED, [entityId, entityId]);
    return rows.map(({ entity_id }) => entity_id);
  }
}
