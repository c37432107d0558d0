import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { RevocableClaims } from '../access-token/session-claims.js';
import { Customers } from '../customer/customers.js';
import { RecordedEndings } from '../feed/recorded-endings.js';
import { RevocationLimit } from '../feed/revocation-limit.js';
import { Clock, dayOf } from '../platform/clock.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { Browsers } from './browsers.js';
import { Session, type SessionKind } from './session.entity.js';
import type { StoredSession } from './session.statements.js';
import { Sessions } from './sessions.js';

/** Clocks differ: what was made up to this long before the `iat` of a token counts as made with it. */
const CLOCK_MARGIN_MS = 60_000;
/** A device that was last seen before has no valid access token any more, also if clocks differ. */
const MAX_TOKEN_DAYS = 2;
/** No device holds such a session. The end of one of its tokens ends it. */
const END_WITH_THEIR_TOKENS: SessionKind[] = ['moved', 'proof', 'token'];
/** The sessions that stay if all of a customer end, but those of its browsers. */
const OF_BROWSERS: SessionKind[] = ['own', 'sign_in'];

/** Ends the sessions of customers, each ending in one transaction (protocol §3.10 and §3.12). */
@Injectable()
export class SessionEndings {
  constructor(
    private readonly clock: Clock,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly browsers: Browsers,
    private readonly endings: RecordedEndings,
    private readonly revocationLimit: RevocationLimit,
  ) {}

  /**
   * Ends an access token, and what was made with it (protocol §4.12). The tokens of a session end together, and the device
   * stays. A token that has expired, or has ended, ends only what was made with tokens of its epoch.
   *
   * @returns the number of entries for verifiers; `undefined` if all had ended before
   */
  endToken(claims: RevocableClaims & { exp: number }): Promise<number | undefined> {
    return this.customers.withLock({ entityId: claims.sub }, (manager) => this.endTokenIn(manager, claims));
  }

  /**
   * Ends a session of a customer with its access tokens, and all that was made with them.
   *
   * @param isInFeed whether verifiers learn of the ending
   * @returns the number of entries for verifiers; `undefined` if the customer does not have the session
   */
  end(customerId: string, id: string, reason: InactiveReason, isInFeed = true): Promise<number | undefined> {
    return this.customers.withLock({ entityId: customerId }, async (manager) => {
      const all = await this.sessions.lockAllOf(manager, customerId);
      const session = all.find((one) => one.id === id);
      return session && this.endIn(manager, all, [session], reason, isInFeed);
    });
  }

  /**
   * Ends a session because its code or refresh token was used again. Verifiers do not learn of it beyond the limit of
   * revocations.
   */
  async endReused(customerId: string, id: string, reason: InactiveReason): Promise<void> {
    const counted = this.revocationLimit.admit();
    const entries = await this.end(customerId, id, reason, counted !== undefined);
    counted?.setEntries(entries ?? 0);
  }

  /**
   * Ends all sessions of a customer whose generation the transaction has raised. Verifiers learn of the generation, so the
   * sessions need no entries.
   *
   * @param browsers whether the browsers end too. One that leads to no other customer loses its secret, so that a copy of
   *   its cookies does not lead to its next customer
   */
  async endAllIn(manager: EntityManager, customerId: string, generation: number, browsers: boolean): Promise<void> {
    await this.endings.recordCustomer(manager, customerId, generation);
    const leading = browsers ? await this.sessions.allOf(manager, customerId) : [];
    const browserIds = leading.flatMap(({ browser_id }) => browser_id ?? []);
    await this.browsers.lockAllIn(manager, browserIds);
    const all = await this.sessions.lockAllOf(manager, customerId);
    await this.deleteIn(manager, browsers ? all : all.filter(({ kind }) => !OF_BROWSERS.includes(kind)));
    if (!browsers) await manager.increment(Session, { customerId, kind: In(OF_BROWSERS) }, 'epoch', 1);
    await this.browsers.deleteUnusedIn(manager, browserIds);
  }

  /** Deletes all sessions of some locked customers, whose tokens have ended already. Verifiers get no entries. */
  async deleteAllIn(manager: EntityManager, customerIds: string[]): Promise<void> {
    const ofCustomers = { customerId: In(valueList(customerIds)) };
    const rows = await manager.find(Session, { select: { browserId: true }, where: ofCustomers });
    const browserIds = rows.flatMap(({ browserId }) => browserId ?? []);
    await this.browsers.lockAllIn(manager, browserIds);
    await manager.delete(Session, ofCustomers);
    await this.browsers.deleteUnusedIn(manager, browserIds);
  }

  /**
   * Deletes a device in favour of a new one. It ends as if it had expired: what was made with it stays, and now belongs to
   * its parent.
   */
  async replaceIn(manager: EntityManager, session: StoredSession): Promise<void> {
    const { id, customer_id: customerId } = session;
    if (this.mayHaveTokens(session)) await this.endings.recordSessions(manager, [{ id, reason: 'session_ended' }]);
    await this.sessions.handChildrenIn(manager, { customerId, parentId: id }, session);
    await manager.delete(Session, { id });
  }

  private async endTokenIn(
    manager: EntityManager,
    claims: RevocableClaims & { exp: number },
  ): Promise<number | undefined> {
    const { sub: customerId, jti, sid, ep = 0, iat, exp } = claims;
    const all = await this.sessions.lockAllOf(manager, customerId);
    const session = all.find(({ id }) => id === (sid ?? jti));
    const isExpired = exp <= this.clock.seconds();
    // a request that began before it expired may still make something with it, and looks for this entry; and the entry of
    // a session that is gone may be missing in the feed, because the limit of revocations was reached
    const hasOwnEntry = sid === undefined || isExpired || !session;
    if (hasOwnEntry) await this.endings.recordToken(manager, jti);
    const ownCount = Number(hasOwnEntry);
    if (!session) return ownCount;
    if (END_WITH_THEIR_TOKENS.includes(session.kind))
      return ownCount + (await this.endIn(manager, all, [session], 'revoked'));
    const madeFrom = iat * 1000 - CLOCK_MARGIN_MS;
    const children = all.filter((child) => child.parent_id === sid && timeOf(child.created_at) >= madeFrom);
    if (isExpired || session.epoch !== ep) {
      const madeWithEpoch = children.filter(({ parent_epoch }) => parent_epoch === ep);
      if (!hasOwnEntry && madeWithEpoch.length === 0) return undefined;
      return ownCount + (await this.endIn(manager, all, madeWithEpoch, 'ancestor_revoked'));
    }
    await manager.increment(Session, { id: session.id }, 'epoch', 1);
    const ended = [{ id: session.id, reason: 'revoked' as const }];
    await this.endings.recordSessions(manager, ended, { epoch: ep + 1 });
    return 1 + (await this.endIn(manager, all, children, 'ancestor_revoked'));
  }

  /** Ends sessions with all that was made with them, at any depth. @returns the number of entries for verifiers */
  private async endIn(
    manager: EntityManager,
    all: StoredSession[],
    sessions: StoredSession[],
    reason: InactiveReason,
    isInFeed = true,
  ): Promise<number> {
    const ended = withDescendants(all, sessions);
    const withTokens = ended.filter((session) => this.mayHaveTokens(session));
    const entries = withTokens.map((session) => ({
      id: session.id,
      reason: sessions.includes(session) ? reason : ('ancestor_revoked' as const),
    }));
    await this.endings.recordSessions(manager, entries, { isInFeed });
    await this.deleteIn(manager, ended);
    return entries.length;
  }

  private async deleteIn(manager: EntityManager, sessions: StoredSession[]): Promise<void> {
    for (const portion of portionsOf(sessions))
      await manager.delete(Session, { id: In(valueList(portion.map(({ id }) => id))) });
  }

  /** Only a session with an access token that has not expired needs an entry for verifiers. */
  private mayHaveTokens({ kind, redeemed_at, seen_day }: StoredSession): boolean {
    if (kind === 'code' || kind === 'token' || (kind === 'proof' && redeemed_at === null)) return false;
    return seen_day === null || seen_day >= dayOf(this.clock.now()) - MAX_TOKEN_DAYS;
  }
}

function withDescendants(all: StoredSession[], sessions: StoredSession[]): StoredSession[] {
  const ids = new Set(sessions.map(({ id }) => id));
  let size = 0;
  while (size < ids.size) {
    size = ids.size;
    for (const { id, parent_id } of all) if (parent_id !== null && ids.has(parent_id)) ids.add(id);
  }
  return all.filter(({ id }) => ids.has(id));
}
