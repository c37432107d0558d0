import { Injectable } from '@nestjs/common';
import { IsISO8601, IsObject, IsString } from 'class-validator';
import { Audit } from '../audit/audit.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { withIsoTimes } from '../platform/database/sql-time.js';
import { selectStatement } from '../platform/database/statement.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { CustomerDataParticipants, type ExportedRows } from './customer-data-participants.js';

type Time = Date | string | null;

/** The day on which the browser was last seen is in another row if this is not the first customer of the browser. */
const FIND_IDENTITY = selectStatement<
  [entityId: string],
  { organization_id: string; created_at: Time; unlinked_at: Time }
>(
  `SELECT own.entity_id, own.browser_id, own.organization_id, own.group_id, own.created_at, own.generation,
      own.link_generation, own.unlinked_at, own.scope_seen_day, own.last_token_day, browser.last_seen_day
    FROM customer_identity own LEFT JOIN customer_identity browser ON browser.entity_id = own.browser_id
    WHERE own.entity_id = ? AND own.organization_id IS NOT NULL`,
);

/** Without the hash and the challenge of the code. The table has no index for it, because only an export needs one. */
const FIND_TRANSFER_TOKENS = selectStatement<[entityId: string], { expires_at: Time; consumed_at: Time }>(
  `SELECT kind, client_id, subject, organization_id, made_with, expires_at, consumed_at, consumed_by, consumed_network
    FROM one_time_code WHERE kind = 'transfer' AND subject = ?`,
);

/** The kinds that name a customer: revocations of release 1, and the raised generation. Other kinds name tokens. */
const FIND_REVOCATIONS = selectStatement<[entityId: string], { issued_before: Time; expires_at: Time }>(
  `SELECT kind, value, issued_before, expires_at, generation, audience FROM revocation
    WHERE kind IN ('subject', 'generation') AND value = ?`,
);

/** Everything that the service stores about a customer, in the response to the operator. */
export class CustomerExport {
  @IsString()
  @ApiProperty('The id of the customer.', EXAMPLE.entityId)
  entity_id: string;

  @IsISO8601()
  @ApiProperty('When the service read the data.', EXAMPLE.time)
  exported_at: string;

  @IsObject()
  @ApiProperty(
    'The stored rows about the customer, by the name of their table, without secrets and hashes of secrets.',
    { customer_identity: [{ entity_id: EXAMPLE.entityId, organization_id: EXAMPLE.organizationId }] },
  )
  tables: ExportedRows;
}

/** Reads everything that the service stores about a customer (protocol §9.2). */
@Injectable()
export class CustomerExports {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly audit: Audit,
    private readonly participants: CustomerDataParticipants,
  ) {}

  /** Resolves to `undefined` if the customer is unknown or erased. */
  async of(entityId: string): Promise<CustomerExport | undefined> {
    const [identity] = await this.database.select(FIND_IDENTITY, [entityId]);
    if (!identity) return undefined;
    const codes = await this.database.select(FIND_TRANSFER_TOKENS, [entityId]);
    const revocations = await this.database.select(FIND_REVOCATIONS, [entityId]);
    const tables = {
      customer_identity: [withIsoTimes(identity, ['created_at', 'unlinked_at'])],
      one_time_code: codes.map((row) => withIsoTimes(row, ['expires_at', 'consumed_at'])),
      revocation: revocations.map((row) => withIsoTimes(row, ['issued_before', 'expires_at'])),
      ...(await this.participants.exportRows(entityId)),
    };
    const subject = { kind: 'customer', id: entityId } as const;
    const { organization_id: organizationId } = identity;
    const actor = operatorActor();
    this.audit.record({ event: 'identity.exported', outcome: 'success', actor, subject, organizationId });
    return { entity_id: entityId, exported_at: new Date(this.clock.now()).toISOString(), tables };
  }
}
