import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsISO8601, IsObject, IsString, ValidateNested } from 'class-validator';
import { type CustomerRow, Customers } from '../customer/customers.js';
import { Optional, OptionalText, Text } from '../oauth/parameters.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { timeOf, withIsoTimes } from '../platform/database/sql-dialect.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { Sessions } from '../session/sessions.js';
import { CustomerDataParticipants, type ExportedRows, MAX_LINKED_IDS } from './customer-data-participants.js';
import { BrowserRecord, CustomerDevices, RefreshTokenRecord } from './customer-devices.js';

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
  @Type(() => RefreshTokenRecord)
  @ApiProperty('The refresh tokens that lead to the customer, the one used last first.')
  refresh_tokens!: RefreshTokenRecord[];

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

  @Optional()
  @IsBoolean()
  @ApiProperty(
    'Present and `true` if a table of an extension has more than 1,000 rows, of which the export has 1,000.',
    true,
  )
  truncated?: boolean;
}

/** Reads what the service stores about a customer (protocol §4.16 and §9.2). */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly participants: CustomerDataParticipants,
    private readonly devices: CustomerDevices,
  ) {}

  /** The organization of a customer; `undefined` if the customer is unknown or being erased. */
  async organizationOf(entityId: string): Promise<string | undefined> {
    return (await this.rowOf(entityId))?.organization_id;
  }

  /** Reads a customer; `undefined` if it is unknown or being erased. */
  async find(entityId: string): Promise<CustomerRecord | undefined> {
    const row = await this.rowOf(entityId);
    if (!row) return undefined;
    const { organization_id, group_id, creator, created_at } = row;
    const linked = [
      ...(await this.customers.linkedTo(entityId, MAX_LINKED_IDS)),
      ...(await this.participants.linkedIds(entityId)),
    ];
    const linked_ids = linked.slice(0, MAX_LINKED_IDS);
    return {
      ...{ entity_id: entityId, organization_id },
      ...(group_id !== '' && { group_id }),
      browser: creator === 'browser',
      created_at: new Date(timeOf(created_at)).toISOString(),
      browsers: await this.devices.lastSeenBrowsers(entityId),
      refresh_tokens: await this.devices.refreshTokens(entityId),
      ...(linked_ids.length > 0 && { linked_ids }),
    };
  }

  /**
   * Everything that the service stores about a customer; `undefined` if it is unknown or being erased.
   *
   * @param actor the caller, for the audit event
   */
  async export(entityId: string, actor: AuditParty): Promise<CustomerExport | undefined> {
    const row = await this.rowOf(entityId);
    if (!row) return undefined;
    const { tables, truncated } = await this.participants.exportRows(entityId);
    const customer = (await this.customers.exportRows(entityId)).map((each) => withIsoTimes(each, ['created_at']));
    const sessions = await this.sessions.exportRows(entityId);
    const session = sessions.map((each) => withIsoTimes(each, ['redeemed_at', 'used_at', 'created_at', 'expires_at']));
    const { organization_id: organizationId } = row;
    this.audit.success('identity.exported', actor, party('customer', entityId), { organizationId });
    return {
      entity_id: entityId,
      exported_at: new Date(this.clock.now()).toISOString(),
      tables: { customer, session, ...tables },
      ...(truncated && { truncated }),
    };
  }

  private async rowOf(entityId: string): Promise<CustomerRow | undefined> {
    const row = await this.customers.find(entityId);
    return row?.erased_at === null ? row : undefined;
  }
}
