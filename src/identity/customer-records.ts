import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsISO8601, IsString, ValidateNested } from 'class-validator';
import { Optional, OptionalText, Text } from '../oauth/parameters.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement } from '../platform/database/statement.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { BrowserRecord, CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants, RefreshFamilyRecord } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';

/** The parameter of the operator's routes about a customer, for the OpenAPI document. */
export const CUSTOMER_PATH = { entity_id: { description: 'The id of the customer.', example: EXAMPLE.entityId } };

/** The customer in responses to the operator. */
export class CustomerRecord {
  @Text('The id of the customer.', EXAMPLE.entityId)
  entity_id!: string;

  @Text('The organization of the customer.', EXAMPLE.organizationId)
  organization_id!: string;

  @OptionalText('Only for a customer of a group.', EXAMPLE.groupId)
  group_id?: string;

  @IsBoolean()
  @ApiProperty('Whether a browser created the customer; otherwise an agent or another grant did.', true)
  browser!: boolean;

  @IsISO8601()
  @ApiProperty('When the customer was created.', EXAMPLE.time)
  created_at!: string;

  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  @ApiProperty('The browsers that lead to the customer, the one seen last first, at most 200.')
  browsers!: BrowserRecord[];

  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => RefreshFamilyRecord)
  @ApiProperty('The refresh families that lead to the customer, the one used last first.')
  refresh_families!: RefreshFamilyRecord[];

  @Optional()
  @IsString({ each: true })
  @ApiProperty('Other ids of the customer, in the order of their linking, at most 200.', [EXAMPLE.linkedId])
  linked_ids?: string[];
}

const FIND = selectStatement<
  [entityId: string],
  NotNull<EntityRow<CustomerIdentity, 'organization_id' | 'group_id' | 'creator' | 'created_at'>>
>({
  columns: ['organization_id', 'group_id', 'creator', 'created_at'],
  from: 'customer WHERE entity_id = ? AND erased_at IS NULL',
  batch: true,
});

const IS_OF = selectStatement<[entityId: string, organizationId: string], unknown>(
  'SELECT 1 FROM customer WHERE entity_id = ? AND organization_id = ?',
);

/** Reads what the service stores about a customer. */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly database: Database,
    private readonly participants: CustomerDataParticipants,
    private readonly browsers: CustomerBrowsers,
  ) {}

  /** Whether a customer is one of an organization, erased or not. */
  async isOf(organizationId: string, entityId: string): Promise<boolean> {
    return (await this.database.select(IS_OF, [entityId, organizationId])).length > 0;
  }

  /** Reads a customer; `undefined` if it is unknown or erased. */
  async find(entityId: string): Promise<CustomerRecord | undefined> {
    const [row] = await this.database.select(FIND, [entityId]);
    if (!row) return undefined;
    const { group_id, creator, created_at } = row;
    const families = await Promise.all(this.participants.own.map((own) => own.refreshFamilies?.(entityId) ?? []));
    const linked_ids = await this.participants.linkedIds(entityId);
    return {
      entity_id: entityId,
      organization_id: row.organization_id,
      ...(group_id !== '' && { group_id }),
      browser: creator === 'browser',
      created_at: new Date(timeOf(created_at)).toISOString(),
      browsers: await this.browsers.lastSeen(entityId),
      refresh_families: families.flat(),
      ...(linked_ids.length > 0 && { linked_ids }),
    };
  }
}
