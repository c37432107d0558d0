import { Injectable } from '@nestjs/common';
import { IsISO8601, IsObject } from 'class-validator';
import { FIND_RAISED_GENERATION } from '../access-token/feed/raised-generations.js';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { OptionalText, Text } from '../oauth/parameters.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { withIsoTimes } from '../platform/database/sql-dialect.js';
import { selectStatement } from '../platform/database/statement.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import type { ExportedRows } from './export-page.js';

const FIND_CUSTOMER = selectStatement<
  [entityId: string],
  { organization_id: string; created_at: Date | string | null }
>(
  `SELECT entity_id, organization_id, group_id, creator, generation, link_generation, version, last_token_day,
      created_at FROM customer WHERE entity_id = ? AND erased_at IS NULL`,
);

/** The kind of revocation that names a customer: its raised generation. Other kinds name tokens. */
const REVOCATION = { name: 'revocation', find: FIND_RAISED_GENERATION, times: ['issued_before', 'expires_at'] };

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

/** Reads everything that the service stores about a customer (protocol §4.16 and §9.2). */
@Injectable()
export class CustomerExports {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly participants: CustomerDataParticipants,
  ) {
    participants.own.push({ tables: [REVOCATION] });
  }

  /**
   * Resolves to `undefined` if the customer is unknown or erased.
   *
   * @param actor the caller, for the audit event
   * @param after `next` of the page before
   * @throws OAuthError `invalid_request` if `after` has another form
   */
  async page(entityId: string, actor: AuditParty, after?: string): Promise<CustomerExport | undefined> {
    const [customer] = await this.database.select(FIND_CUSTOMER, [entityId]);
    if (!customer) return undefined;
    const cursor = after ? Buffer.from(after, 'base64url').toString() : undefined;
    const page = await this.participants.exportRows(entityId, cursor);
    const tables = { ...(!cursor && { customer: [withIsoTimes(customer, ['created_at'])] }), ...page.tables };
    const { organization_id: organizationId } = customer;
    this.audit.success('identity.exported', actor, party('customer', entityId), { organizationId });
    return {
      entity_id: entityId,
      exported_at: new Date(this.clock.now()).toISOString(),
      tables,
      ...(page.next && { next: Buffer.from(page.next).toString('base64url') }),
    };
  }
}
