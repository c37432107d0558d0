import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { SessionClaims } from '../access-token/session-claims.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { dialectOf } from '../platform/database/sql-dialect.js';
import { writeStatement } from '../platform/database/statement.js';
import { actOf, agentHasEnded } from '../session/agent/agent-columns.js';
import { Session } from '../session/session.entity.js';
import type { RedeemableRow, StoredSession } from '../session/session.statements.js';
import { SessionBounds } from '../session/session-bounds.js';
import { SessionEndings } from '../session/session-endings.js';
import { Sessions } from '../session/sessions.js';
import { CallerNetworks } from './caller-networks.js';
import { type CodeProof, type FoundCode, RedeemableCodes } from './redeemable-codes.js';

/** The first of parallel redemptions changes the row. An ending has deleted it. */
const REDEEM = writeStatement<[network: string | null, expiresAt: Date, id: string, now: Date]>(
  ({ now }) => `UPDATE session SET kind = 'moved', redeemed_at = ${now}, redeemed_network = ?, expires_at = ?
    WHERE id = ? AND kind = 'code' AND expires_at > ?`,
);

/** A parallel request has redeemed the code, or it has ended, or its customer. */
class LostCodeError extends Error {}

/** The columns that a code gets when it becomes a device. */
type DeviceColumns = Pick<Session, 'kind' | 'expiresAt' | 'seenDay'> & Partial<Session>;

/** A transfer token that its client may redeem now. */
export interface RedeemableCode extends FoundCode<RedeemableRow> {
  /** Of the session that the redemption makes of the code. */
  id: string;
  entityId: string;
  organizationId: string;
  /** Empty if the customer belongs to no group. */
  groupId: string;
  /** Whether the customer is a user's. */
  hasUser: boolean;
  clientId: string;
  hasChallenge: boolean;
  /** The claims of the token that the code gives. */
  session: SessionClaims;
}

/** Transfer tokens (protocol §4.4). */
@Injectable()
export class TransferCodes extends RedeemableCodes<RedeemableRow> {
  constructor(
    clock: Clock,
    configuration: Configuration,
    networks: CallerNetworks,
    audit: Audit,
    private readonly database: Database,
    private readonly sessions: Sessions,
    private readonly endings: SessionEndings,
    private readonly bounds: SessionBounds,
  ) {
    super('transfer_token', clock, configuration, networks, audit);
  }

  /**
   * Stores a code in a transaction that has locked the customer's row, and returns it.
   *
   * @param origin the session, or the agent, whose token makes the code
   * @throws OAuthError 429 if the customer has too many
   */
  async issueIn(
    manager: EntityManager,
    all: StoredSession[],
    origin: Pick<Session, 'customerId' | 'depth'> & Partial<Session>,
    { clientId, codeChallenge }: { clientId: string; codeChallenge: string | undefined },
  ): Promise<string> {
    await this.bounds.assertMayTransfer(manager, all);
    const { code, columns } = this.newCode(this.configuration.TRANSFER_TOKEN_TTL);
    await this.sessions.insertIn(manager, { ...origin, ...columns, clientId, codeChallenge: codeChallenge ?? null });
    return code;
  }

  /** @throws OAuthError `invalid_grant` */
  async findRedeemable(code: string, proof: CodeProof): Promise<RedeemableCode> {
    const found = await this.find(code, proof);
    const { row } = found;
    return {
      ...found,
      ...{ id: row.id, entityId: row.customer_id, organizationId: row.organization_id, groupId: row.group_id },
      ...{ hasUser: Boolean(row.has_user), clientId: proof.clientId, hasChallenge: row.code_challenge !== null },
      session: { gen: Number(row.generation), sid: row.id, ep: 0, ...actOf(row) },
    };
  }

  /**
   * Redeems the code for one access token.
   *
   * @param ttlSeconds the lifetime of the access token
   * @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended
   */
  async redeem(code: RedeemableCode, ttlSeconds: number): Promise<void> {
    const now = this.clock.now();
    const expiresAt = new Date(now + ttlSeconds * 1000);
    const redeemed = await this.database.execute(REDEEM, [code.network, expiresAt, code.id, new Date(now)]);
    if (redeemed === 0) await this.rejectLost(code);
    this.auditUse('redeemed', code.row);
  }

  /**
   * Redeems the code for a device, in one transaction.
   *
   * @param lock locks the customer's row first, and resolves to false if the customer is gone or has another generation
   * @param prepare inserts what the device refers to
   * @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended; 429 if the customer
   * has too many devices
   */
  async redeemForDevice(
    code: RedeemableCode,
    device: DeviceColumns,
    lock: (manager: EntityManager) => Promise<boolean>,
    prepare?: (manager: EntityManager) => Promise<void>,
  ): Promise<void> {
    try {
      await this.database.transaction(async (manager) => {
        if (!(await lock(manager))) throw new LostCodeError();
        await this.bounds.makeRoom(manager, code.entityId);
        await prepare?.(manager);
        await this.redeemIn(manager, code, device);
      });
    } catch (error) {
      if (error instanceof LostCodeError) await this.rejectLost(code);
      throw error;
    }
    this.auditUse('redeemed', code.row);
  }

  auditIssued({
    entityId,
    clientId,
    organizationId,
  }: Pick<RedeemableCode, 'entityId' | 'clientId' | 'organizationId'>): void {
    this.auditIssue({ subject: party('customer', entityId), clientId, organizationId });
  }

  protected override rowOf(codeHash: string): Promise<RedeemableRow | undefined> {
    return this.sessions.findByCode(codeHash);
  }

  protected override subjectOf({ customer_id }: RedeemableRow): AuditParty {
    return party('customer', customer_id);
  }

  protected override end({ id, customer_id }: RedeemableRow): Promise<void> {
    return this.endings.endReused(customer_id, id, 'revoked');
  }

  protected override endedReason(row: RedeemableRow): InactiveReason | undefined {
    return agentHasEnded(row) ? 'ancestor_revoked' : undefined;
  }

  /** @throws LostCodeError, which rolls the transaction back */
  private async redeemIn(manager: EntityManager, code: RedeemableCode, device: DeviceColumns): Promise<void> {
    const { now } = dialectOf(manager.dataSource);
    const { affected } = await manager
      .createQueryBuilder()
      .update(Session)
      .set({ ...device, redeemedAt: () => now, redeemedNetwork: code.network })
      .where("id = :id AND kind = 'code' AND expires_at > :time", { id: code.id, time: new Date(this.clock.now()) })
      .execute();
    if (affected !== 1) throw new LostCodeError();
  }
}
