import { Injectable } from '@nestjs/common';
import { type CustomerKeeper, CustomerKeepers, Database } from '../../public/grant.js';

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
    const sql = 'DELETE FROM organization_user WHERE entity_id = ? OR customer_id = ?';
    await this.database.changeAgain(sql, [entityId, entityId]);
  }

  async kept(entityIds: string[]): Promise<string[]> {
    const sql = `SELECT entity_id FROM organization_user
      WHERE entity_id IN (${entityIds.map(() => '?').join()}) AND user_hash IS NOT NULL`;
    const rows = await this.database.select<{ entity_id: string }>(sql, entityIds);
    return rows.map(({ entity_id }) => entity_id);
  }

  async linkedIds(entityId: string): Promise<string[]> {
    const sql = `SELECT entity_id FROM organization_user WHERE customer_id = ? AND entity_id <> ? ORDER BY linked_at`;
    const rows = await this.database.select<{ entity_id: string }>(sql, [entityId, entityId]);
    return rows.map(({ entity_id }) => entity_id);
  }
}
