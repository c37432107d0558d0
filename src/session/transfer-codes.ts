import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import type { SessionClaims } from '../access-token/session-claims.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { isPkceSatisfied } from '../oauth/pkce.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { dialectOf, timeOf } from '../platform/database/sql-dialect.js';
import { writeStatement } from '../platform/database/statement.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { actOf, agentHasEnded } from './agent/agent-columns.js';
import { CallerNetworks, isDuplicateUse } from './caller-networks.js';
import { auditRedeemable, type RedeemableParties } from './redemption-audit.js';
import { Session } from './session.entity.js';
import { SessionBounds } from './session-bounds.js';
import { SessionEndings } from './session-endings.js';
import { type RedeemableRow, Sessions, type StoredSession } from './sessions.js';

/** The first of parallel redemptions changes the row. An ending has deleted it. */
const REDEEM = writeStatement<[network: string | null, expiresAt: Date, id: string, now: Date]>(
  ({ now }) => `UPDATE session SET kind = 'moved', redeemed_at = ${now}, redeemed_network = ?, expires_at = ?
    WHERE id = ? AND kind = 'code' AND expires_at > ?`,
);

/** A parallel request has redeemed the code, or it has ended, or its customer. */
export class LostCodeError extends Error {}

/** The columns that a code gets when it becomes a device. */
export type DeviceColumns = Pick<Session, 'kind' | 'expiresAt' | 'seenDay'> & Partial<Session>;

/** A transfer token that its client may redeem now. */
export interface RedeemableCode {
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
  codeHash: string;
  /** An HMAC of the network of this request. */
  network: string | null;
}

/** Transfer tokens: codes that can be redeemed once (protocol §3.6 and §3.7). A redeemed code is the session that it gave. */
@Injectable()
export class TransferCodes {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
    private readonly networks: CallerNetworks,
    private readonly sessions: Sessions,
    private readonly endings: SessionEndings,
    private readonly bounds: SessionBounds,
    private readonly audit: Audit,
  ) {}

  /**
   * Stores a code in a transaction that has locked the customer's row, and returns it. The database has only its hash.
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
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const now = this.clock.now();
    await this.sessions.insertIn(manager, {
      ...origin,
      id: uuidv7(now),
      kind: 'code',
      clientId,
      codeHash: sha256(code),
      codeChallenge: codeChallenge ?? null,
      expiresAt: new Date(now + this.configuration.TRANSFER_TOKEN_TTL * 1000),
    });
    return code;
  }

  /**
   * Finds the code. A wrong client or verifier leaves it usable.
   *
   * @throws OAuthError `invalid_grant`
   */
  async find(code: string, clientId: string, codeVerifier: string | undefined): Promise<RedeemableCode> {
    const codeHash = sha256(code);
    const row = await this.sessions.findByCode(codeHash);
    if (!row) throw OAuthError.invalidGrant('code: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('code: of another client');
    if (!isPkceSatisfied(row.code_challenge, codeVerifier))
      throw OAuthError.invalidGrant('code: the verifier does not fit');
    const network = this.networks.current(codeHash);
    if (row.kind !== 'code') return this.rejectReuse(row, network);
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
    if (agentHasEnded(row)) throw OAuthError.invalidGrant('code: the token that created it has ended');
    return {
      ...{ id: row.id, entityId: row.customer_id, organizationId: row.organization_id, groupId: row.group_id },
      ...{ hasUser: Boolean(row.has_user), clientId, hasChallenge: row.code_challenge !== null, codeHash, network },
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
    this.auditUse('redeemed', code, code.id);
  }

  /**
   * Redeems the code for a device.
   *
   * @param transaction locks the customer's row, and calls `redeemIn`
   * @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended
   */
  async redeemForDevice(code: RedeemableCode, transaction: () => Promise<unknown>): Promise<void> {
    try {
      await transaction();
    } catch (error) {
      if (error instanceof LostCodeError) await this.rejectLost(code);
      throw error;
    }
    this.auditUse('redeemed', code, code.id);
  }

  /** @throws LostCodeError, which rolls the transaction back */
  async redeemIn(manager: EntityManager, code: RedeemableCode, device: DeviceColumns): Promise<void> {
    const { now } = dialectOf(manager.dataSource);
    const { affected } = await manager
      .createQueryBuilder()
      .update(Session)
      .set({ ...device, redeemedAt: () => now, redeemedNetwork: code.network })
      .where("id = :id AND kind = 'code' AND expires_at > :time", { id: code.id, time: new Date(this.clock.now()) })
      .execute();
    if (affected !== 1) throw new LostCodeError();
  }

  /** @throws OAuthError `invalid_grant` for a code that was redeemed or has ended since it was found */
  private async rejectLost({ codeHash, network }: RedeemableCode): Promise<never> {
    const row = await this.sessions.findByCode(codeHash);
    if (row && row.kind !== 'code') return this.rejectReuse(row, network);
    throw OAuthError.invalidGrant('code: the token that created it has ended');
  }

  /** Describes a code for the operator; `undefined` if it is not stored. */
  async describe(code: string): Promise<StoredToken | undefined> {
    const row = await this.sessions.findByCode(sha256(code));
    if (!row) return undefined;
    const inactiveReason = this.inactiveReasonOf(row);
    return {
      kind: 'transfer token',
      ...{ clientId: row.client_id ?? '', subject: row.customer_id, organizationId: row.organization_id },
      ...{ expiresAt: timeOf(row.expires_at), session: row.id },
      ...(inactiveReason && { inactiveReason }),
    };
  }

  auditIssued(code: CodeParties): void {
    auditRedeemable(this.audit, 'transfer_token', 'issued', partiesOf(code));
  }

  private auditUse(action: 'redeemed' | 'replayed', code: CodeParties, session: string): void {
    auditRedeemable(this.audit, 'transfer_token', action, { ...partiesOf(code), session });
  }

  /**
   * A second use is a duplicate soon after the first use and from its network, or a replay, which ends the session that
   * the first use gave, with everything that was made with it (protocol §3.7). @throws OAuthError `invalid_grant`
   */
  private async rejectReuse(row: RedeemableRow, network: string | null): Promise<never> {
    const { id, customer_id: entityId, organization_id: organizationId } = row;
    if (isDuplicateUse(row, network)) throw OAuthError.invalidGrant('code: duplicate use');
    await this.endings.endReused(entityId, id, 'revoked');
    this.auditUse('replayed', { entityId, organizationId, clientId: row.client_id ?? '' }, id);
    throw OAuthError.invalidGrant('code: replayed');
  }

  private inactiveReasonOf(row: RedeemableRow): InactiveReason | undefined {
    if (row.kind !== 'code') return 'already_used';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return agentHasEnded(row) ? 'ancestor_revoked' : undefined;
  }
}

function partiesOf({ entityId, clientId, organizationId }: CodeParties): RedeemableParties {
  return { subject: party('customer', entityId), clientId, organizationId };
}

/** Whose transfer token it is. */
type CodeParties = Pick<RedeemableCode, 'entityId' | 'organizationId' | 'clientId'>;
