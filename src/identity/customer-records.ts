import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsISO8601, IsObject, IsString, ValidateNested } from 'class-validator';
import { FIND_RAISED_GENERATION } from '../access-token/feed/raised-generations.js';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Optional, OptionalText, Text } from '../oauth/parameters.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement } from '../platform/database/statement.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { BrowserRecord, CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants, MAX_LINKED_IDS, RefreshFamilyRecord } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { FIND_CUSTOMER } from './customer-statements.js';
import type { ExportedRows, ExportedTable } from './export-page.js';

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

/** Everything that the service stores about a customer, in the response to the operator or an agent. */
export class CustomerExport {
  @Text('The id of the customer.', EXAMPLE.entityId)
  entity_id!: string;

  @IsISO8601()
  @ApiProperty('When the service read the data.', EXAMPLE.time)
  exported_at!: string;

  @IsObject()
  @ApiProperty(
    'The stored rows about the customer, by the name of their table, without secrets and hashes of secrets.',
    { customer: [{ entity_id: EXAMPLE.entityId, organization_id: EXAMPLE.organizationId }] },
  )
  tables!: ExportedRows;

  @OptionalText('The value of `after` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next?: string;
}

/** The query of an export. */
export class ExportQuery {
  @OptionalText('`next` of the page before.', EXAMPLE.cursor)
  after?: string;
}

const FIND = selectStatement<
  [entityId: string],
  NotNull<EntityRow<CustomerIdentity, 'organization_id' | 'group_id' | 'creator' | 'created_at'>>
>({
  columns: ['organization_id', 'group_id', 'creator', 'created_at'],
  from: 'customer WHERE entity_id = ? AND erased_at IS NULL',
  batch: true,
});

const EXPORTED_TABLES: ExportedTable[] = [
  {
    name: 'customer',
    find: `SELECT entity_id, organization_id, group_id, creator, generation, link_generation, version, last_token_day,
        created_at FROM customer WHERE entity_id = ? AND erased_at IS NULL ORDER BY entity_id`,
    times: ['created_at'],
  },
  // the kind of revocation that names a customer: its raised generation. Other kinds name tokens
  { name: 'revocation', find: FIND_RAISED_GENERATION, times: ['issued_before', 'expires_at'] },
];

/** Reads what the service stores about a customer (protocol §4.16 and §9.2). */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly participants: CustomerDataParticipants,
    private readonly browsers: CustomerBrowsers,
  ) {
    participants.own.push({ tables: EXPORTED_TABLES });
  }

  /** Whether a customer is one of an organization, erased or not. */
  async isOf(organizationId: string, entityId: string): Promise<boolean> {
    return (await this.database.select(FIND_CUSTOMER, [entityId]))[0]?.organization_id === organizationId;
  }

  /** The organization of a customer; `undefined` if the customer is unknown or erased. */
  async organizationOf(entityId: string): Promise<string | undefined> {
    return (await this.database.select(FIND, [entityId]))[0]?.organization_id;
  }

  /** Reads a customer; `undefined` if it is unknown or erased. */
  async find(entityId: string): Promise<CustomerRecord | undefined> {
    const [row] = await this.database.select(FIND, [entityId]);
    if (!row) return undefined;
    const { group_id, creator, created_at } = row;
    const families = await Promise.all(this.participants.own.map((own) => own.refreshFamilies?.(entityId) ?? []));
    const linked_ids = (await this.participants.linkedIds(entityId)).slice(0, MAX_LINKED_IDS);
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

  /**
   * A page of everything that the service stores about a customer; `undefined` if it is unknown or erased.
   *
   * @param actor the caller, for the audit event
   * @param after `next` of the page before
   * @throws OAuthError `invalid_request` if `after` has another form
   */
  async export(entityId: string, actor: AuditParty, after?: string): Promise<CustomerExport | undefined> {
    const organizationId = await this.organizationOf(entityId);
    if (organizationId === undefined) return undefined;
    const cursor = after ? Buffer.from(after, 'base64url').toString() : undefined;
    const { tables, next } = await this.participants.exportRows(entityId, cursor);
    this.audit.success('identity.exported', actor, party('customer', entityId), { organizationId });
    return {
      entity_id: entityId,
      exported_at: new Date(this.clock.now()).toISOString(),
      tables,
      ...(next && { next: Buffer.from(next).toString('base64url') }),
    };
  }
}
