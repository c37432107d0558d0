import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsISO8601, IsObject, IsString, ValidateNested } from 'class-validator';
import { type CustomerRow, Customers } from '../customer/customers.js';
import { OrganizationCustomers } from '../customer/organization-customers.js';
import { CustomerEvents } from '../feed/customer-events.js';
import { encodeCursor, Page, type PageQuery, rangeOf } from '../oauth/pages.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Clock, DAY_MS } from '../platform/clock.js';
import { timeOf, withIsoTimes } from '../platform/database/sql-dialect.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { ApiOptionalString, ApiString, Optional } from '../platform/validation/validation.js';
import type { DeviceRow } from '../session/session.statements.js';
import { Sessions } from '../session/sessions.js';
import type { ExportedRows } from './customer-data-participant.js';
import { CustomerDataParticipants } from './customer-data-participants.js';

/** The number of linked ids that the operator sees. A user can sign in on any number of browsers. */
const MAX_LINKED_IDS = 200;

/** The parameter of the operator's routes about a customer, for the OpenAPI document. */
export const CUSTOMER_PATH = { entity_id: { description: 'The id of the customer.', example: EXAMPLE.entityId } };

/** A browser that leads to a customer, in responses to the operator. */
export class BrowserRecord {
  @ApiString('The id of the browser.', EXAMPLE.browserId)
  id!: string;

  @IsISO8601()
  @ApiProperty('The last day on which the browser used the customer (UTC).', '2026-11-22')
  last_seen_day!: string;
}

/** A refresh token that leads to a customer, in responses to the operator. */
export class RefreshTokenRecord {
  @ApiString('The id of the session of the refresh token.', EXAMPLE.sessionId)
  id!: string;

  @ApiString('The client that uses the refresh token.', EXAMPLE.clientId)
  client_id!: string;

  @IsISO8601()
  @ApiProperty('When the client used the refresh token last.', EXAMPLE.time)
  last_used_at!: string;

  @IsISO8601()
  @ApiProperty('When the refresh token expires unless it is used.', EXAMPLE.laterTime)
  expires_at!: string;
}

/** A customer in the list of the customers of an organization. */
class ListedCustomer {
  @ApiString('The id of the customer.', EXAMPLE.entityId)
  entity_id!: string;

  @ApiString('The organization of the customer.', EXAMPLE.organizationId)
  organization_id!: string;

  @ApiOptionalString('Only for a customer of a group.', EXAMPLE.groupId)
  group_id?: string;

  @IsBoolean()
  @ApiProperty(
    'Whether a browser or the anonymous grant created the customer; otherwise an agent or another grant did.',
    true,
  )
  browser!: boolean;

  @IsISO8601()
  @ApiProperty('When the customer was created.', EXAMPLE.time)
  created_at!: string;
}

/** A page of the customers of an organization. */
export class CustomerPage extends Page {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => ListedCustomer)
  @ApiProperty('The customers of the page, in the order of their ids.')
  customers!: ListedCustomer[];
}

/** The customer in responses to the operator. */
export class CustomerRecord extends ListedCustomer {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  @ApiProperty('The browsers that lead to the customer, the one seen last first.')
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
  @ApiString('The id of the customer.', EXAMPLE.entityId)
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
  @ApiProperty('Present and `true` if a table has more than 1,000 rows, of which the export has 1,000.', true)
  truncated?: boolean;
}

/** Reads what the service stores about a customer (protocol §4.16 and §9.2). */
@Injectable()
export class CustomerRecords {
  constructor(
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly customers: Customers,
    private readonly ofOrganizations: OrganizationCustomers,
    private readonly sessions: Sessions,
    private readonly events: CustomerEvents,
    private readonly participants: CustomerDataParticipants,
  ) {}

  /** The organization of a customer; `undefined` if the customer is unknown or being erased. */
  async organizationOf(entityId: string): Promise<string | undefined> {
    return (await this.rowOf(entityId))?.organization_id;
  }

  /** Reads a customer; `undefined` if it is unknown or being erased. */
  async find(entityId: string): Promise<CustomerRecord | undefined> {
    const row = await this.rowOf(entityId);
    if (!row) return undefined;
    const devices = await this.sessions.devicesOf(entityId);
    const linked_ids = await this.customers.linkedTo(entityId, MAX_LINKED_IDS);
    return {
      ...listedCustomer(row),
      browsers: browsersOf(devices),
      refresh_tokens: devices.filter(({ browser_id }) => browser_id === null).map(refreshTokenOf),
      ...(linked_ids.length > 0 && { linked_ids }),
    };
  }

  /** A page of the customers of an organization, in the order of their ids. */
  async customerPage(organizationId: string, query: PageQuery): Promise<CustomerPage> {
    const list = `customers/${organizationId}`;
    const { after, limit } = rangeOf(list, query);
    const rows = await this.ofOrganizations.page(organizationId, after);
    const customers = rows.slice(0, limit).map(listedCustomer);
    const last = customers.at(-1);
    if (last === undefined || rows.length <= limit) return { customers };
    return { customers, next_cursor: encodeCursor(list, last.entity_id) };
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
    const { erased_at: _, ...stored } = row;
    const customer = [withIsoTimes(stored, ['created_at'])];
    const keys = await this.customers.exportKeys(entityId);
    const events = await this.events.exportRows(entityId);
    const sessions = await this.sessions.exportRows(entityId);
    const session = sessions.map((row) => withIsoTimes(row, ['redeemed_at', 'used_at', 'created_at', 'expires_at']));
    const { organization_id: organizationId } = row;
    this.audit.success('identity.exported', actor, party('customer', entityId), { organizationId });
    return {
      entity_id: entityId,
      exported_at: new Date(this.clock.now()).toISOString(),
      tables: {
        ...{ customer, session },
        ...(keys.length > 0 && { customer_key: keys }),
        ...(events.rows.length > 0 && { customer_event: events.rows }),
        ...tables,
      },
      ...((truncated || events.truncated) && { truncated: true }),
    };
  }

  private async rowOf(entityId: string): Promise<CustomerRow | undefined> {
    const row = await this.customers.find(entityId);
    return row?.erased_at === null ? row : undefined;
  }
}

function listedCustomer({ entity_id, organization_id, group_id, creator, created_at }: CustomerRow): ListedCustomer {
  return {
    ...{ entity_id, organization_id },
    ...(group_id !== '' && { group_id }),
    browser: creator === 'browser',
    created_at: new Date(timeOf(created_at)).toISOString(),
  };
}

/** Those of the devices of a customer that are browsers, in the same order. */
function browsersOf(devices: DeviceRow[]): BrowserRecord[] {
  const browsers = devices.filter(({ browser_id }) => browser_id !== null);
  return browsers.map(({ browser_id, seen_day }) => ({ id: browser_id as string, last_seen_day: isoDay(seen_day) }));
}

function refreshTokenOf({ id, client_id, used_at, expires_at }: DeviceRow): RefreshTokenRecord {
  return {
    ...{ id, client_id: client_id ?? '' },
    last_used_at: new Date(timeOf(used_at as Date)).toISOString(),
    expires_at: new Date(timeOf(expires_at)).toISOString(),
  };
}

function isoDay(day: number | null): string {
  return new Date((day ?? 0) * DAY_MS).toISOString().slice(0, 10);
}
