import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { RaisedGenerations } from '../access-token/feed/raised-generations.js';
import { Audit } from '../audit/audit.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { bindWrite } from '../platform/database/bound-write.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import { timeOf } from '../platform/database/sql-time.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import type { CustomerRecord } from './customer-record.js';

const FIND = selectStatement<
  [entityId: string],
  NotNull<EntityRow<CustomerIdentity, 'organization_id' | 'group_id'>> &
    EntityRow<CustomerIdentity, 'browser_id' | 'created_at'>
>({
  columns: ['organization_id', 'group_id', 'browser_id', 'created_at'],
  from: 'customer_identity WHERE entity_id = ? AND organization_id IS NOT NULL',
  batch: true,
});

/** Raises both generations in the same statement, so that a token or link of a request under way has ended too. */
const ERASE = writeStatement<[entityId: string]>(`UPDATE customer_identity
  SET organization_id = NULL, group_id = NULL, scope_seen_day = NULL, last_token_day = NULL,
    unlinked_at = NULL, generation = COALESCE(generation, 0) + 1, link_generation = COALESCE(link_generation, 0) + 1
  WHERE entity_id = ?`);

/** Reads and erases what the service stores about a customer. */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly database: Database,
    private readonly denylist: Denylist,
    private readonly generations: RaisedGenerations,
    private readonly audit: Audit,
    private readonly participants: CustomerDataParticipants,
    private readonly browsers: CustomerBrowsers,
  ) {}

  /** Reads a customer; `undefined` if it is unknown or erased. */
  async find(entityId: string): Promise<CustomerRecord | undefined> {
    const [row] = await this.database.select(FIND, [entityId]);
    if (!row) return undefined;
    const { group_id, browser_id, created_at } = row;
    const linked_ids = await this.participants.linkedIds(entityId);
    return {
      entity_id: entityId,
      organization_id: row.organization_id,
      ...(group_id !== '' && { group_id }),
      browser: browser_id !== null,
      created_at: new Date(timeOf(created_at)).toISOString(),
      browsers: await this.browsers.lastSeen(entityId),
      refresh_families: await this.participants.refreshFamilies(entityId),
      ...(linked_ids.length > 0 && { linked_ids }),
    };
  }

  /**
   * Ends a customer's tokens and deletes all its data except its id and its browser. The browser's other customers
   * remain. The tokens end first, so that they have ended if the deletion of the data fails; a retry then deletes it.
   *
   * @returns whether the customer existed
   */
  async erase(entityId: string): Promise<boolean> {
    const [found] = await this.database.select(FIND, [entityId]);
    const isErased = found !== undefined && (await this.eraseRow(entityId, found.organization_id));
    // Also for an erased customer, because an earlier erasure may have failed after it erased the row.
    await this.participants.onErase(entityId);
    return isErased;
  }

  private async eraseRow(entityId: string, organizationId: string): Promise<boolean> {
    await this.denylist.revokeForRelease1(entityId, 'erased');
    const isErased = (await this.generations.raiseOfCustomer(entityId, bindWrite(ERASE, [entityId]))) > 0;
    const subject = { kind: 'customer', id: entityId } as const;
    const actor = operatorActor();
    if (isErased) this.audit.record({ event: 'identity.erased', outcome: 'success', actor, subject, organizationId });
    return isErased;
  }
}
