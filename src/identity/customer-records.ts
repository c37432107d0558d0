import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import { timeOf } from '../platform/database/sql-time.js';
import { selectStatement } from '../platform/database/statement.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import type { CustomerRecord } from './customer-record.js';

const FIND = selectStatement<
  [entityId: string],
  NotNull<EntityRow<CustomerIdentity, 'organization_id' | 'group_id' | 'creator' | 'created_at'>>
>({
  columns: ['organization_id', 'group_id', 'creator', 'created_at'],
  from: 'customer WHERE entity_id = ? AND erased_at IS NULL',
  batch: true,
});

/** Reads what the service stores about a customer. */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly database: Database,
    private readonly participants: CustomerDataParticipants,
    private readonly browsers: CustomerBrowsers,
  ) {}

  /** Reads a customer; `undefined` if it is unknown or erased. */
  async find(entityId: string): Promise<CustomerRecord | undefined> {
    const [row] = await this.database.select(FIND, [entityId]);
    if (!row) return undefined;
    const { group_id, creator, created_at } = row;
    const linked_ids = await this.participants.linkedIds(entityId);
    return {
      entity_id: entityId,
      organization_id: row.organization_id,
      ...(group_id !== '' && { group_id }),
      browser: creator === 'browser',
      created_at: new Date(timeOf(created_at)).toISOString(),
      browsers: await this.browsers.lastSeen(entityId),
      refresh_families: await this.participants.refreshFamilies(entityId),
      ...(linked_ids.length > 0 && { linked_ids }),
    };
  }
}
