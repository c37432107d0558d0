import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { Actor, RevocableClaims } from '../access-token/token-claims.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type SqlValue, timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { AGENT_COLUMNS, AGENT_JOIN, type AgentColumns, agentHasEnded } from './agent/agent-columns.js';
import { Endings } from './endings.js';
import { Session, type SessionKind } from './session.entity.js';

/** Protocol §3.10. */
const MAX_DEPTH_COUNT = 8;
/** Clocks differ: what was made up to this long before the `iat` of a token counts as made with it. */
const CLOCK_MARGIN_MS = 60_000;
/** A device that was last seen before has no valid access token any more, also if clocks differ. */
const MAX_TOKEN_DAYS = 2;

const COLUMNS = [
  'id',
  'kind',
  'customer_id',
  'browser_id',
  'parent_id',
  'parent_epoch',
  'depth',
  'epoch',
  'agent_session_id',
  'agent_epoch',
  'redeemed_at',
  'seen_day',
  'created_at',
  'expires_at',
] as const;

/** A session of a customer, as far as bounds and endings need it. */
export type StoredSession = EntityRow<Session, (typeof COLUMNS)[number]>;

const FIND_ALL = selectStatement<[customerId: string], StoredSession>(
  `SELECT ${COLUMNS.join(', ')} FROM session WHERE customer_id = ?`,
);

/** No code among them is redeemed before the transaction ends. */
const LOCK_ALL = selectStatement<[customerId: string], StoredSession>(
  ({ forUpdate }) => `SELECT ${COLUMNS.join(', ')} FROM session WHERE customer_id = ?${forUpdate}`,
);

const DEVICE_COLUMNS = [
  'id',
  'kind',
  'browser_id',
  'organization_id',
  'group_id',
  'client_id',
  'used_at',
  'seen_day',
  'expires_at',
] as const;

/** A session of a device: of a browser, or with a refresh token. */
export type DeviceRow = EntityRow<Session, (typeof DEVICE_COLUMNS)[number]>;

const FIND_DEVICES = selectStatement<[customerId: string, now: Date], DeviceRow & AgentColumns>(
  `SELECT ${[...DEVICE_COLUMNS.map((column) => `session.${column}`), ...AGENT_COLUMNS].join(', ')}
    FROM session ${AGENT_JOIN}
    WHERE session.customer_id = ? AND (session.browser_id IS NOT NULL OR session.kind = 'refresh')
      AND session.expires_at > ?
    ORDER BY session.seen_day DESC, session.id`,
);

/** What an export has of a session: no hash, and no id of a browser, by which exports could be joined. */
const FIND_EXPORTED = selectStatement<[customerId: string], Record<string, SqlValue>>(
  `SELECT id, kind, customer_id, organization_id, group_id, parent_id, parent_epoch, depth, epoch, client_id,
      (SELECT agent_id FROM agent_session WHERE agent_session.id = session.agent_session_id) AS agent_id,
      redeemed_at, used_at, seen_day, signed_in_day, created_at, expires_at
    FROM session WHERE customer_id = ? ORDER BY id`,
);

export interface EndingOptions {
  /** Whether verifiers learn of the ending: not if the limit of revocations is reached. */
  isInFeed?: boolean;
}

/** The values of a new session. The rest is `null` or 0. */
export type NewSession = Pick<Session, 'id' | 'kind' | 'customerId' | 'expiresAt'> & Partial<Session>;

/** What a session has of the caller that made it. */
export type SessionOrigin = Pick<Session, 'customerId' | 'depth' | 'agentSessionId' | 'agentEpoch'>;

/**
 * Begins and ends the sessions of customers. Each method takes the manager of a transaction that has already written the
 * customer's row (`Customers.writeIn`), so that two changes of one customer's sessions follow each other (decision 0038).
 */
@Injectable()
export class Sessions {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly endings: Endings,
  ) {}

  /** The devices that hold a customer, the one used last first. */
  async devicesOf(customerId: string): Promise<DeviceRow[]> {
    const rows = await this.database.select(FIND_DEVICES, [customerId, new Date(this.clock.now())]);
    return rows.filter((row) => !agentHasEnded(row));
  }

  /** The stored sessions of a customer, for an export. */
  exportRows(customerId: string): Promise<Record<string, SqlValue>[]> {
    return this.database.select(FIND_EXPORTED, [customerId]);
  }

  /** All sessions of a customer, expired ones included. */
  allOf(manager: EntityManager, customerId: string): Promise<StoredSession[]> {
    return selectIn(manager, FIND_ALL, [customerId]);
  }

  /** The same, locked, so that no visit and no rotation changes them before the transaction ends. */
  lockAllOf(manager: EntityManager, customerId: string): Promise<StoredSession[]> {
    return selectIn(manager, LOCK_ALL, [customerId]);
  }

  async insertIn(manager: EntityManager, session: NewSession): Promise<void> {
    await manager.insert(Session, { depth: 0, epoch: 0, createdAt: new Date(this.clock.now()), ...session });
  }

  /** Moves the end of a session, because the user has signed in again. */
  async renewIn(
    manager: EntityManager,
    id: string,
    end: Pick<Session, 'seenDay' | 'signedInDay' | 'expiresAt'>,
  ): Promise<void> {
    await manager.update(Session, { id }, end);
  }

  /**
   * The values of a session that is made with the token of a customer, which has not ended: the transaction has checked it
   * after it has written the customer's row. A token without a session gets one. `expiresAt` is the parent's.
   *
   * @throws OAuthError `invalid_grant` if the session of the token has expired, or the chain of transfers is too long
   */
  async childOf(
    manager: EntityManager,
    claims: RevocableClaims & { exp: number },
    all: StoredSession[],
  ): Promise<SessionOrigin & Pick<Session, 'parentId' | 'parentEpoch' | 'expiresAt'>> {
    const { sub: customerId, jti, sid = jti, ep = 0, act, exp } = claims;
    const parent = all.find(({ id }) => id === sid);
    const agent = agentOf(act);
    const expiresAt = parent ? new Date(parent.expires_at) : new Date(exp * 1000);
    if (expiresAt.getTime() <= this.clock.now()) throw OAuthError.invalidGrant('the session of the token has expired');
    if (!parent) {
      await this.insertIn(manager, { id: jti, kind: 'token', customerId, ...agent, expiresAt });
    }
    const depth = (parent?.depth ?? 0) + 1;
    if (depth > MAX_DEPTH_COUNT) throw OAuthError.invalidGrant(`transfer: more than ${MAX_DEPTH_COUNT} in a chain`);
    return { customerId, parentId: sid, parentEpoch: ep, depth, ...agent, expiresAt };
  }

  /**
   * Ends an access token, and what was made with it (protocol §4.12). The tokens of a session end together, and the device
   * stays. A token that has expired, or has ended, ends only what was made with tokens of its epoch.
   *
   * @returns the number of entries for verifiers
   */
  async endTokenIn(manager: EntityManager, claims: RevocableClaims & { exp: number }): Promise<number> {
    const { sub: customerId, jti, sid, ep = 0, iat, exp } = claims;
    const all = await selectIn(manager, LOCK_ALL, [customerId]);
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
    const children = all.filter((each) => each.parent_id === sid && timeOf(each.created_at) >= madeFrom);
    if (isExpired || session.epoch !== ep) {
      const madeWithEpoch = children.filter(({ parent_epoch }) => parent_epoch === ep);
      return ownCount + (await this.endIn(manager, all, madeWithEpoch, 'ancestor_revoked'));
    }
    await manager.increment(Session, { id: session.id }, 'epoch', 1);
    const ended = [{ id: session.id, reason: 'revoked' as const }];
    await this.endings.recordSessions(manager, ended, { epoch: ep + 1 });
    return 1 + (await this.endIn(manager, all, children, 'ancestor_revoked'));
  }

  /**
   * Ends a session of a customer with its access tokens, and all that was made with them.
   *
   * @returns the number of entries for verifiers; `undefined` if the customer does not have the session
   */
  async endOneIn(
    manager: EntityManager,
    customerId: string,
    id: string,
    reason: InactiveReason,
    options: EndingOptions = {},
  ): Promise<number | undefined> {
    const all = await selectIn(manager, LOCK_ALL, [customerId]);
    const session = all.find((each) => each.id === id);
    return session && this.endIn(manager, all, [session], reason, options);
  }

  /**
   * Deletes sessions of a customer whose generation the transaction has raised. Verifiers learn of the generation, so the
   * sessions need no entries.
   *
   * @param kept the kinds that stay, whose access tokens end
   */
  async deleteAllIn(manager: EntityManager, customerId: string, kept: SessionKind[]): Promise<void> {
    const all = await selectIn(manager, LOCK_ALL, [customerId]);
    const deleted = all.filter(({ kind }) => !kept.includes(kind));
    await this.deleteIn(manager, deleted);
    if (kept.length > 0) await manager.increment(Session, { customerId, kind: In(kept) }, 'epoch', 1);
  }

  /** The browsers that lead, or have led, to a customer. */
  async browsersOf(manager: EntityManager, customerId: string): Promise<string[]> {
    return (await this.allOf(manager, customerId)).flatMap(({ browser_id }) => browser_id ?? []);
  }

  /**
   * Deletes a device in favour of a new one. It ends as if it had expired: what was made with it stays, and now belongs to
   * its parent.
   */
  async replaceIn(manager: EntityManager, session: StoredSession): Promise<void> {
    const { id, customer_id: customerId } = session;
    if (this.mayHaveTokens(session)) await this.endings.recordSessions(manager, [{ id, reason: 'session_ended' }]);
    await handChildren(manager, { customerId, parentId: id }, session);
    await manager.delete(Session, { id });
  }

  /** Ends sessions with all that was made with them, at any depth. @returns the number of entries for verifiers */
  private async endIn(
    manager: EntityManager,
    all: StoredSession[],
    roots: StoredSession[],
    reason: InactiveReason,
    options: EndingOptions = {},
  ): Promise<number> {
    const ended = withDescendants(all, roots);
    const withTokens = ended.filter((session) => this.mayHaveTokens(session));
    const entries = withTokens.map((session) => ({
      id: session.id,
      reason: roots.includes(session) ? reason : ('ancestor_revoked' as const),
    }));
    await this.endings.recordSessions(manager, entries, options);
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

/** The columns of a session that ends with the session of an agent. */
export function agentOf(act: Actor | undefined): Pick<Session, 'agentSessionId' | 'agentEpoch'> {
  return { agentSessionId: act?.sid ?? null, agentEpoch: act?.ep ?? null };
}

/**
 * Hands the children of a session that goes to its parent. They count as made with the parent's tokens when the session
 * was.
 */
export async function handChildren(
  manager: EntityManager,
  children: { customerId: string; parentId: string },
  gone: Pick<StoredSession, 'parent_id' | 'parent_epoch' | 'created_at'>,
): Promise<void> {
  const { parent_id: parentId, parent_epoch: parentEpoch } = gone;
  await manager.update(Session, children, { parentId, parentEpoch, createdAt: new Date(timeOf(gone.created_at)) });
}

/** No device holds such a session. The end of one of its tokens ends it. */
const END_WITH_THEIR_TOKENS: SessionKind[] = ['moved', 'proof', 'token'];

function withDescendants(all: StoredSession[], roots: StoredSession[]): StoredSession[] {
  const ids = new Set(roots.map(({ id }) => id));
  let size = 0;
  while (size < ids.size) {
    size = ids.size;
    for (const { id, parent_id } of all) if (parent_id !== null && ids.has(parent_id)) ids.add(id);
  }
  return all.filter(({ id }) => ids.has(id));
}
