import { Injectable } from '@nestjs/common';
import type { EntityManager, FindOptionsWhere } from 'typeorm';
import { inactiveToken } from '../access-token/inactive-reason.js';
import type { Actor, RevocableClaims } from '../access-token/session-claims.js';
import { Customers } from '../customer/customers.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type SqlValue, timeOf } from '../platform/database/sql-dialect.js';
import { valueList } from '../platform/database/value-list.js';
import { agentHasEnded } from './agent/agent-columns.js';
import { type AgentCaller, AgentSessions } from './agent/agent-sessions.js';
import { Session } from './session.entity.js';
import {
  type DeviceRow,
  FIND_ALL,
  FIND_BY_CODE,
  FIND_BY_REFRESH_TOKEN,
  FIND_DEVICES,
  FIND_EXPORTED,
  findOfBrowsers,
  LOCK_ALL,
  type RedeemableRow,
  type StoredSession,
} from './session.statements.js';
import type { BrowserSessionEnd } from './session-lifetime.js';
import { TokenValidity } from './token-validity.js';

/** Protocol §3.10. */
const MAX_CHAINED_TRANSFERS = 8;

const NO_REFRESH_TOKEN = { refreshIdHash: null, currentHash: null, previousHash: null, successorNonce: null };

/** The values of a new session. The rest is `null` or 0. */
export type NewSession = Pick<Session, 'id' | 'kind' | 'customerId' | 'expiresAt'> & Partial<Session>;

/** What a session has of the caller that made it. */
export type SessionOrigin = Pick<Session, 'customerId' | 'depth' | 'agentSessionId' | 'agentEpoch'>;

/** What a session has of the customer whose token made it. `expiresAt` is the parent's. */
type ChildOrigin = SessionOrigin & Pick<Session, 'parentId' | 'parentEpoch' | 'expiresAt'>;

/** The claims of a token that something is made with. */
type CallerClaims = RevocableClaims & { exp: number };

/**
 * Reads and begins the sessions of customers. A transaction that begins or ends one first locks the customer's row, and
 * then reads all, so that two changes of one customer's sessions follow each other (decision 0038).
 */
@Injectable()
export class Sessions {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly customers: Customers,
    private readonly agentSessions: AgentSessions,
    private readonly validity: TokenValidity,
  ) {}

  /** The devices that hold a customer, the one used last first. */
  async devicesOf(customerId: string): Promise<DeviceRow[]> {
    const rows = await this.database.select(FIND_DEVICES, [customerId, new Date(this.clock.now())]);
    return rows.filter((row) => !agentHasEnded(row));
  }

  /** The sessions of some browsers, expired and ended ones included. */
  ofBrowsers(manager: EntityManager, browserIds: string[]): Promise<DeviceRow[]> {
    const ids = valueList(browserIds);
    return selectIn(manager, findOfBrowsers(ids), ids);
  }

  async findByCode(codeHash: string): Promise<RedeemableRow | undefined> {
    return (await this.database.select(FIND_BY_CODE, [codeHash]))[0];
  }

  async findByRefreshToken(refreshIdHash: string): Promise<RedeemableRow | undefined> {
    return (await this.database.select(FIND_BY_REFRESH_TOKEN, [refreshIdHash]))[0];
  }

  /** The stored sessions of a customer, for an export. */
  exportRows(customerId: string): Promise<Record<string, SqlValue>[]> {
    return this.database.select(FIND_EXPORTED, [customerId]);
  }

  /** All sessions of a customer, expired ones included. */
  allOf(manager: EntityManager, customerId: string): Promise<StoredSession[]> {
    return selectIn(manager, FIND_ALL, [customerId]);
  }

  /** All sessions of a customer, locked, so that no visit and no rotation changes them before the transaction ends. */
  lockAllOf(manager: EntityManager, customerId: string): Promise<StoredSession[]> {
    return selectIn(manager, LOCK_ALL, [customerId]);
  }

  /**
   * Begins something with the token of a customer, in a transaction.
   *
   * @param begin gets all sessions of the customer, and what the new one has of the token
   * @throws OAuthError `invalid_token` if the token has ended; `invalid_grant` if its session has expired, or the chain
   * of transfers is too long
   */
  async beginForCustomer<Result>(
    claims: CallerClaims,
    begin: (manager: EntityManager, all: StoredSession[], origin: ChildOrigin) => Promise<Result>,
  ): Promise<Result> {
    const { sub: entityId, gen: generation = 0 } = claims;
    const begun = await this.customers.withLock({ entityId, generation }, async (manager) => {
      if (await this.validity.hasEndedIn(manager, claims)) throw inactiveToken('revoked');
      const all = await this.allOf(manager, entityId);
      return begin(manager, all, await this.childOf(manager, claims, all));
    });
    if (begun === undefined) throw inactiveToken('customer_generation');
    return begun;
  }

  /**
   * Begins something for a customer with the token of an agent, in a transaction.
   *
   * @param begin gets all sessions of the customer, and what the new one has of the token
   * @returns `undefined` if the customer is gone, was linked, or has another generation
   * @throws OAuthError `invalid_token` if the token has ended
   */
  async beginForAgent<Result>(
    agent: AgentCaller,
    customer: { entityId: string; generation?: number },
    begin: (manager: EntityManager, all: StoredSession[], origin: SessionOrigin) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { entityId: customerId } = customer;
    const origin = { customerId, depth: 1, ...agentOf(await this.agentSessions.actorFor(agent)) };
    return this.customers.withLock(customer, async (manager) => {
      if (await this.validity.hasEndedIn(manager, agent.claims)) throw inactiveToken('revoked');
      return begin(manager, await this.allOf(manager, customerId), origin);
    });
  }

  async insertIn(manager: EntityManager, session: NewSession): Promise<void> {
    await manager.insert(Session, { depth: 0, epoch: 0, createdAt: new Date(this.clock.now()), ...session });
  }

  /** Moves the end of a session, because the user has signed in again. */
  async renewIn(manager: EntityManager, id: string, end: BrowserSessionEnd): Promise<void> {
    await manager.update(Session, { id }, end);
  }

  /**
   * Lets a browser no longer lead to customers. Their tokens and devices stay: the sessions remain without the browser, and
   * may begin what their last access tokens allow, unless they end before.
   *
   * @param sessions those of the browser, or some of them; or the session of a refresh token
   * @returns the number of sessions
   */
  async detachIn(
    manager: EntityManager,
    sessions: FindOptionsWhere<Session> & ({ browserId: FindOptionsWhere<Session>['browserId'] & {} } | { id: string }),
  ): Promise<number> {
    const end = new Date(this.clock.now() + DAY_MS);
    const expiresAt = () => 'CASE WHEN expires_at > :end THEN :end ELSE expires_at END';
    const { affected = 0 } = await manager
      .createQueryBuilder()
      .update(Session)
      .set({ browserId: null, organizationId: null, groupId: null, ...NO_REFRESH_TOKEN, expiresAt })
      .where(sessions)
      .setParameter('end', end)
      .execute();
    return affected;
  }

  /**
   * Hands the children of a session that goes to its parent. They count as made with the parent's tokens when the
   * session was.
   */
  async handChildrenIn(
    manager: EntityManager,
    children: { customerId: string; parentId: string },
    gone: Pick<StoredSession, 'parent_id' | 'parent_epoch' | 'created_at'>,
  ): Promise<void> {
    const { parent_id: parentId, parent_epoch: parentEpoch } = gone;
    await manager.update(Session, children, { parentId, parentEpoch, createdAt: new Date(timeOf(gone.created_at)) });
  }

  /** A token without a session gets one. */
  private async childOf(manager: EntityManager, claims: CallerClaims, all: StoredSession[]): Promise<ChildOrigin> {
    const { sub: customerId, jti, sid = jti, ep = 0, act, exp } = claims;
    const parent = all.find(({ id }) => id === sid);
    const agent = agentOf(act);
    const expiresAt = parent ? new Date(parent.expires_at) : new Date(exp * 1000);
    if (expiresAt.getTime() <= this.clock.now()) throw OAuthError.invalidGrant('the session of the token has expired');
    if (!parent) await this.insertIn(manager, { id: jti, kind: 'token', customerId, ...agent, expiresAt });
    const depth = (parent?.depth ?? 0) + 1;
    if (depth > MAX_CHAINED_TRANSFERS)
      throw OAuthError.invalidGrant(`transfer: more than ${MAX_CHAINED_TRANSFERS} in a chain`);
    return { customerId, parentId: sid, parentEpoch: ep, depth, ...agent, expiresAt };
  }
}

/** The columns of a session that ends with the session of an agent. */
export function agentOf(act: Actor | undefined): Pick<Session, 'agentSessionId' | 'agentEpoch'> {
  return { agentSessionId: act?.sid ?? null, agentEpoch: act?.ep ?? null };
}
