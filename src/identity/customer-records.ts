import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsISO8601, IsString, ValidateNested } from 'class-validator';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { Optional } from '../oauth/parameters.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import { timeOf } from '../platform/database/sql-time.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { BrowserRecord, CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';

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
  SET organization_id = NULL, group_id = NULL, scope_seen_day = NULL, unlinked_at = NULL,
    generation = COALESCE(generation, 0) + 1, link_generation = COALESCE(link_generation, 0) + 1
  WHERE entity_id = ?`);

/** The customer in responses to the operator. */
export class CustomerRecord {
  @IsString()
  entity_id: string;

  @IsString()
  organization_id: string;

  /** Only for customers of a group (protocol §4.2). */
  @Optional()
  @IsString()
  group_id?: string;

  /** Whether a browser owns the customer; otherwise an agent created it. */
  @IsBoolean()
  browser: boolean;

  @IsISO8601()
  created_at: string;

  /** The browsers that lead to the customer, the one seen last first. */
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  browsers: BrowserRecord[];

  /** Other ids of the customer, in the order of their linking. */
  @Optional()
  @IsString({ each: true })
  linked_ids?: string[];
}

/** Reads and erases what the service stores about a customer. */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly database: Database,
    private readonly denylist: Denylist,
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
      browsers: await this.browsers.list(entityId),
      ...(linked_ids.length > 0 && { linked_ids }),
    };
  }

  /**
   * Ends a customer's tokens and deletes all its data except its id and its browser. The browser's other customers
   * remain.
   *
   * @returns whether the customer existed
   */
  async erase(entityId: string): Promise<boolean> {
    const found = await this.find(entityId);
    if (!found) {
      await this.participants.onErase(entityId); // An earlier erasure may have failed after it erased the row.
      return false;
    }
    await this.denylist.revokeForRelease1(entityId, 'erased');
    await this.participants.onErase(entityId);
    const isErased = (await this.database.executeIdempotent(ERASE, [entityId])) > 0;
    const subject = { kind: 'customer', id: entityId } as const;
    const { organization_id: organizationId } = found;
    if (isErased)
      this.audit.record({
        event: 'identity.erased',
        outcome: 'success',
        actor: operatorActor(),
        subject,
        organizationId,
      });
    // A participant that read the row before its erasure may have written data since the first call.
    await this.participants.onErase(entityId);
    return isErased;
  }
}
