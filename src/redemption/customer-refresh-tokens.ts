import { Injectable } from '@nestjs/common';
import { IsNull, Not } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { Customer, CustomerSpace } from '../customer/customer.js';
import { Customers, NEW_CUSTOMER, newCustomerRow } from '../customer/customers.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { insertsTogether, type NotNull, writeStatement } from '../platform/database/statement.js';
import { uuidv7 } from '../platform/uuid.js';
import { actOf, agentHasEnded } from '../session/agent/agent-columns.js';
import { NEW_SESSION, newSessionRow } from '../session/first-session.js';
import { Session } from '../session/session.entity.js';
import type { RedeemableRow } from '../session/session.statements.js';
import { SessionEndings } from '../session/session-endings.js';
import { SessionLifetime } from '../session/session-lifetime.js';
import { Sessions } from '../session/sessions.js';
import { RefreshTokens, type Rotation } from './refresh-tokens.js';
import { type RedeemableCode, TransferCodes } from './transfer-codes.js';

/** The grant by which a client uses a customer's refresh tokens. */
export const REFRESH_TOKEN_GRANT = 'refresh_token';

/** A session of a customer with a refresh token. */
type CustomerRefreshRow = RedeemableRow & NotNull<Pick<RedeemableRow, 'client_id' | 'current_hash' | 'seen_day'>>;

/** One of several parallel uses of the current token matches the row. An ending has deleted it. */
const ROTATE = writeStatement<
  [
    nextHash: string,
    usedHash: string,
    nonce: string,
    usedAt: Date,
    today: number,
    expiresAt: Date,
    id: string,
    usedHash: string,
  ]
>(`UPDATE session SET current_hash = ?, previous_hash = ?, successor_nonce = ?, used_at = ?, seen_day = ?,
      expires_at = ?
    WHERE id = ? AND current_hash = ?`);

const INSERT_VISITOR = insertsTogether(NEW_CUSTOMER, NEW_SESSION);

/** Refresh tokens of customers (protocol §4.8). */
@Injectable()
export class CustomerRefreshTokens extends RefreshTokens<CustomerRefreshRow> {
  constructor(
    clock: Clock,
    configuration: Configuration,
    private readonly database: Database,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly endings: SessionEndings,
    private readonly codes: TransferCodes,
    private readonly lifetime: SessionLifetime,
    audit: Audit,
  ) {
    super(clock, configuration, audit);
  }

  /**
   * Redeems a transfer token for a device that keeps a refresh token.
   *
   * @returns the first refresh token
   * @throws OAuthError `invalid_grant` if the code has ended meanwhile; 429 if the customer has too many devices
   */
  async begin(code: RedeemableCode): Promise<string> {
    const { refreshToken, columns } = this.first();
    const { entityId, clientId, organizationId, session } = code;
    const used = { usedAt: new Date(this.clock.now()), seenDay: dayOf(this.clock.now()) };
    await this.codes.redeemForDevice(code, { kind: 'refresh', ...columns, ...used }, (manager) =>
      this.customers.lockIn(manager, entityId, session.gen),
    );
    const subject = party('customer', entityId);
    this.auditUse('issued', { subject, clientId, organizationId, session: code.id });
    return refreshToken;
  }

  /** Creates a customer together with its first session, which has a refresh token (protocol §4.17). */
  async beginVisitor(clientId: string, space: CustomerSpace): Promise<{ customer: Customer; refreshToken: string }> {
    const { organizationId } = space;
    const now = this.clock.now();
    const [entityId, sid] = [uuidv7(now), uuidv7(now)];
    const { seenDay, expiresAt } = this.lifetime.beginningToday(organizationId, false);
    const { refreshToken, columns } = this.first(expiresAt);
    await this.database.insert(INSERT_VISITOR, [
      ...newCustomerRow(entityId, space, 'browser', now),
      ...newSessionRow({ ...space, entityId, sid, now, seenDay, expiresAt, refresh: { clientId, ...columns } }),
    ]);
    this.auditUse('issued', { subject: party('customer', entityId), clientId, organizationId, session: sid });
    return {
      customer: { entityId, ...space, generation: now, hasUser: false, session: { gen: now, sid, ep: 0 } },
      refreshToken,
    };
  }

  /**
   * Lets the session of a refresh token no longer lead to its customer, as a browser is forgotten (protocol §4.13). What was
   * made with its tokens stays.
   *
   * @param space only a customer of this organization, or of this group of it, is forgotten
   */
  async forget(
    refreshToken: string,
    clientId: string,
    { organizationId, groupId }: { organizationId: string; groupId: string | undefined },
  ): Promise<void> {
    const row = await this.sessionOf(refreshToken, clientId);
    if (row?.organization_id !== organizationId || (groupId ?? row.group_id) !== row.group_id) return;
    const { id, customer_id: entityId } = row;
    const leading = { id, refreshIdHash: Not(IsNull()) }; // another request may have forgotten it meanwhile
    const detached = await this.customers.withLock({ entityId }, (manager) => this.sessions.detachIn(manager, leading));
    if (detached) this.audit.success('token.revoked', party('client', clientId), party('token', id));
  }

  /** The customer with the claims of the token that a refresh gives. */
  customerOf(row: CustomerRefreshRow): Customer {
    const { customer_id: entityId, organization_id: organizationId, group_id: groupId, generation, id: sid } = row;
    const session = { gen: generation, sid, ep: row.epoch, ...actOf(row) };
    return { entityId, organizationId, groupId, generation, hasUser: Boolean(row.has_user), session };
  }

  protected override async find(refreshIdHash: string): Promise<CustomerRefreshRow | undefined> {
    return (await this.sessions.findByRefreshToken(refreshIdHash)) as CustomerRefreshRow | undefined;
  }

  protected override endedReason(row: CustomerRefreshRow): InactiveReason | undefined {
    return agentHasEnded(row) ? 'ancestor_revoked' : undefined;
  }

  /** A customer's own session ends when that of a browser would, not with the refresh token. */
  protected override expiryOf(row: CustomerRefreshRow): Date {
    if (row.kind !== 'own') return super.expiryOf(row);
    return this.lifetime.beginningToday(row.organization_id, false).expiresAt;
  }

  protected override async rotate(
    { id }: CustomerRefreshRow,
    { nextHash, usedHash, nonce, expiresAt }: Rotation,
  ): Promise<boolean> {
    const now = this.clock.now();
    const values = [nextHash, usedHash, nonce, new Date(now), dayOf(now), expiresAt] as const;
    return (await this.database.execute(ROTATE, [...values, id, usedHash])) > 0;
  }

  /** A retry is a use, too. Only the first one of a day notes the day, as each first visit of a browser does. */
  protected override async noteRetry(row: CustomerRefreshRow, usedHash: string): Promise<boolean> {
    const { id, seen_day } = row;
    const now = this.clock.now();
    if (seen_day >= dayOf(now)) return true;
    const predecessor = { id, previousHash: usedHash };
    const { affected } = await this.database.manager.update(Session, predecessor, {
      usedAt: new Date(now),
      seenDay: dayOf(now),
      ...(row.kind === 'own' && { expiresAt: this.expiryOf(row) }),
    });
    return affected === 1;
  }

  protected override end({ id, customer_id: customerId }: CustomerRefreshRow): Promise<void> {
    return this.endings.endReused(customerId, id, 'refresh_token_revoked');
  }

  protected override subjectOf({ customer_id }: CustomerRefreshRow): AuditParty {
    return party('customer', customer_id);
  }
}
