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
import { sha256 } from '../platform/secret.js';
import { CustomerDataParticipants, type ExportedRows } from './customer-data-participants.js';

type Time = Date | string | null;

const FIND_CUSTOMER = selectStatement<[entityId: string], { organization_id: string; created_at: Time }>(
  `SELECT entity_id, organization_id, group_id, creator, generation, link_generation, version, last_token_day,
      created_at FROM customer WHERE entity_id = ? AND erased_at IS NULL`,
);

/** The links without the ids of their browsers, which lead to customers of other organizations too. */
const FIND_LINKS = selectStatement<[entityId: string], { browser_id: string }>(
  `SELECT browser_id, entity_id, organization_id, group_id, origin, generation, seen_day, signed_in_day, root, lineage
    FROM browser_customer WHERE entity_id = ? ORDER BY browser_id`,
);

const FIND_ANCESTORS = selectStatement<[entityId: string], { browser_id: string }>(
  'SELECT browser_id, entity_id, ancestor_id FROM link_ancestor WHERE entity_id = ? ORDER BY browser_id, ancestor_id',
);

/** Without the hash and the challenge of the code. The table has no index for it, because only an export needs one. */
const FIND_TRANSFER_TOKENS = selectStatement<[entityId: string], { expires_at: Time; consumed_at: Time }>(
  `SELECT kind, client_id, subject, organization_id, made_with, expires_at, consumed_at, consumed_by, consumed_network
    FROM one_time_code WHERE kind = 'transfer' AND subject = ?`,
);

/** The kind that names a customer: its raised generation. Other kinds name tokens. */
const FIND_REVOCATIONS = selectStatement<[entityId: string], { issued_before: Time; expires_at: Time }>(
  `SELECT kind, value, issued_before, expires_at, generation, audience FROM revocation
    WHERE kind = 'generation' AND value = ?`,
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
    { customer: [{ entity_id: EXAMPLE.entityId, organization_id: EXAMPLE.organizationId }] },
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
    const [customer] = await this.database.select(FIND_CUSTOMER, [entityId]);
    if (!customer) return undefined;
    const codes = await this.database.select(FIND_TRANSFER_TOKENS, [entityId]);
    const revocations = await this.database.select(FIND_REVOCATIONS, [entityId]);
    const tables = {
      customer: [withIsoTimes(customer, ['created_at'])],
      browser_customer: (await this.database.select(FIND_LINKS, [entityId])).map((row) => withLinkId(row, entityId)),
      link_ancestor: (await this.database.select(FIND_ANCESTORS, [entityId])).map((row) => withLinkId(row, entityId)),
      one_time_code: codes.map((row) => withIsoTimes(row, ['expires_at', 'consumed_at'])),
      revocation: revocations.map((row) => withIsoTimes(row, ['issued_before', 'expires_at'])),
      ...(await this.participants.exportRows(entityId)),
    };
    const subject = { kind: 'customer', id: entityId } as const;
    const { organization_id: organizationId } = customer;
    const actor = operatorActor();
    this.audit.record({ event: 'identity.exported', outcome: 'success', actor, subject, organizationId });
    return { entity_id: entityId, exported_at: new Date(this.clock.now()).toISOString(), tables };
  }
}

/** An id of the link instead of the id of its browser, so that exports of two organizations cannot be joined. */
function withLinkId({ browser_id, ...row }: { browser_id: string }, entityId: string): object {
  return { link_id: sha256(`${browser_id}:${entityId}`), ...row };
}
