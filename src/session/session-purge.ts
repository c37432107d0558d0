import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, LessThan, MoreThan, Not } from 'typeorm';
import { CustomerPurge } from '../customer/customer-purge.js';
import { DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { Registry } from '../registry/registry.js';
import { pagesOf } from '../registry/row-pages.js';
import { AgentSession, type AgentSessionKind, KINDS_WITHOUT_TOKENS } from './agent/agent-session.entity.js';
import { Browsers } from './browsers.js';
import { Session, type SessionKind } from './session.entity.js';
import { SessionLifetime } from './session-lifetime.js';
import { Sessions } from './sessions.js';

/** A session that has expired may still have an access token. */
const RETENTION_MS = DAY_MS;
/** An access token of an agent may live on, and then a token obtained with it. */
const AGENT_RETENTION_MS = 2 * DAY_MS;
/** Of a session of an agent without tokens. Covers requests under way and clocks that differ. */
const WITHOUT_TOKENS_RETENTION_MS = 120_000;
/** The number of sessions that one transaction deletes, within which the purge holds its lease. */
const SESSIONS_PER_STEP = 100;

type PurgedRow = NotNull<EntityRow<Session, 'id' | 'customer_id' | 'created_at'>> &
  EntityRow<Session, 'browser_id' | 'parent_id' | 'parent_epoch'>;

/**
 * What a client may still redeem: an `own` session with a client has a refresh token, and one of the kind `client` gives
 * further tokens. Sessions of other kinds have access tokens only, or belong to a browser.
 */
const REDEEMABLE_KINDS: readonly string[] = ['own', 'code', 'refresh', 'proof', 'client'] satisfies (
  | SessionKind
  | AgentSessionKind
)[];
/** So long ago that the purge deletes the session at once, if nothing refers to it. */
const LONG_AGO_MS = 3 * DAY_MS;

type Redeemable = Session | AgentSession;

type ExpiredSession = Pick<Session, 'id' | 'customerId' | 'browserId'>;

/** A session that lives `idle_days` from its last use, of which neither the organization nor the day is missing. */
type VisitedSession = Session & { organizationId: string; seenDay: number };

/** Purges sessions a day after they have expired, and browsers that lead nowhere (protocol §5.9). */
@Injectable()
export class SessionPurge {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly lifetime: SessionLifetime,
    private readonly customers: CustomerPurge,
    private readonly browsers: Browsers,
    private readonly sessions: Sessions,
  ) {}

  /**
   * Purges in steps. The caller may stop after any step.
   *
   * @param size the number of rows that one statement reads
   * @param now the time of the purge
   * @returns the number of sessions that each step purged
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const before = new Date(now.getTime() - RETENTION_MS);
    const select = { id: true, customerId: true, browserId: true } as const;
    const where = { expiresAt: LessThan(before) };
    const order = { expiresAt: 'ASC' } as const;
    let rows: ExpiredSession[];
    do {
      rows = await this.database.manager.find(Session, { select, where, order, take: size });
      for (const portion of portionsOf(rows, SESSIONS_PER_STEP)) {
        yield await this.database.transaction((manager) => this.purgeIn(manager, portion, before));
      }
    } while (rows.length === size);
  }

  /**
   * Purges sessions of agents that have expired, if nothing that was obtained with them is left. It reads the table by
   * its primary key.
   */
  async *deleteAgentSessions(size: number, now: Date): AsyncGenerator<number, void> {
    const options = { select: { id: true, kind: true, expiresAt: true }, take: size };
    for await (const rows of pagesOf(this.database.manager, AgentSession, 'id', {}, options)) {
      const over = rows.filter(({ kind, expiresAt }) => expiresAt.getTime() + retentionMsOf(kind) < now.getTime());
      yield 0;
      for (const portion of portionsOf(over)) yield await this.deleteUnused(portion.map(({ id }) => id));
    }
  }

  /**
   * Applies settings of organizations that became shorter than the time that was stored at the last visit. Days decide,
   * so one pass a day is enough. It reads the table by its primary key.
   */
  async *applyShorterSettings(size: number, now: Date): AsyncGenerator<number, void> {
    const { manager } = this.database;
    const select = { id: true, organizationId: true, seenDay: true, signedInDay: true, expiresAt: true };
    const visited = { organizationId: Not(IsNull()) };
    for await (const rows of pagesOf(manager, Session, 'id', visited, { select, take: size })) {
      for (const { id, organizationId, seenDay, signedInDay, expiresAt } of rows as VisitedSession[]) {
        if (!this.registry.organizationSettings(organizationId)) continue;
        const shorter = this.lifetime.expiryOf(organizationId, { seenDay, signedInDay });
        // not in the past: its access tokens stay valid until they expire
        const end = new Date(Math.max(shorter.getTime(), now.getTime()));
        // matches no row if the session was used meanwhile
        if (end < expiresAt) await manager.update(Session, { id, seenDay }, { expiresAt: end });
      }
      yield 0;
    }
  }

  /**
   * Ends the codes, refresh tokens and proofs of deleted clients, so that a new client with the id inherits none. It
   * reads the tables by their primary keys, because they have no index on the client.
   */
  async *endOfClients(clientIds: ReadonlySet<string>, size: number, now: Date): AsyncGenerator<number, void> {
    const { manager } = this.database;
    const expiresAt = new Date(now.getTime() - LONG_AGO_MS);
    const options = { select: { id: true, kind: true, clientId: true }, take: size };
    for (const entity of [Session, AgentSession]) {
      for await (const rows of pagesOf<Redeemable>(manager, entity, 'id', {}, options)) {
        const ended = rows.filter(
          ({ kind, clientId }) => REDEEMABLE_KINDS.includes(kind) && clientIds.has(clientId ?? ''),
        );
        for (const portion of portionsOf(ended)) {
          const where = { id: In(portion.map(({ id }) => id)), expiresAt: MoreThan(expiresAt) };
          await manager.update<Redeemable>(entity, where, { expiresAt });
        }
        yield 0;
      }
    }
  }

  /** Deletes the browsers whose sessions were ended, once a day too. */
  async *deleteUnusedBrowsers(size: number): AsyncGenerator<number, void> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const page: { unused: string[]; next: string | undefined } = await this.browsers.findUnused(after, size);
      for (const portion of portionsOf(page.unused, SESSIONS_PER_STEP))
        await this.database.transaction(async (manager) => {
          await this.browsers.lockAllIn(manager, portion);
          await this.browsers.deleteUnusedIn(manager, portion);
        });
      yield 0;
      after = page.next;
    }
  }

  /**
   * Notes in the customers when they were used last, hands the children of the sessions to their parents, and deletes
   * the sessions, and those of their browsers that lead nowhere then.
   *
   * @returns the number of deleted sessions
   */
  private async purgeIn(manager: EntityManager, expired: ExpiredSession[], before: Date): Promise<number> {
    const customerIds = customersOf(expired.map(({ customerId }) => customerId));
    if (customerIds.length > 0) await this.customers.noteLastUseIn(manager, customerIds);
    const browserIds = expired.flatMap(({ browserId }) => browserId ?? []);
    await this.browsers.lockAllIn(manager, browserIds);
    // a visit may have moved the end meanwhile
    const rows = await lockExpired(manager, expired, before);
    if (rows.length === 0) return 0;
    const purged = new Map(rows.map((row) => [row.id, row]));
    for (const parent of await this.parentsIn(manager, rows)) {
      const oldest = remainingAncestor(parent, purged);
      await this.sessions.handChildrenIn(manager, { customerId: parent.customer_id, parentId: parent.id }, oldest);
    }
    await manager.delete(Session, { id: In(valueList([...purged.keys()])) });
    await this.browsers.deleteUnusedIn(manager, browserIds);
    return rows.length;
  }

  private deleteUnused(agentSessionIds: string[]): Promise<number> {
    const ids = valueList(agentSessionIds);
    const deleteUnused = writeStatement<string[]>(
      `DELETE FROM agent_session WHERE id IN (${placeholdersFor(ids)})
        AND NOT EXISTS (SELECT 1 FROM session WHERE session.agent_session_id = agent_session.id)`,
    );
    return this.database.execute(deleteUnused, ids);
  }

  /** Those of some sessions that have children, which belong to the same customers. */
  private async parentsIn(manager: EntityManager, rows: PurgedRow[]): Promise<PurgedRow[]> {
    const customerIds = customersOf(rows.map(({ customer_id }) => customer_id));
    if (customerIds.length === 0) return [];
    const children = { customerId: In(valueList(customerIds)), parentId: In(valueList(rows.map(({ id }) => id))) };
    const childRows = await manager.find(Session, { select: { parentId: true }, where: children });
    const parentIds = new Set(childRows.map(({ parentId }) => parentId));
    return rows.filter(({ id }) => parentIds.has(id));
  }
}

function retentionMsOf(kind: AgentSessionKind): number {
  return KINDS_WITHOUT_TOKENS.includes(kind) ? WITHOUT_TOKENS_RETENTION_MS : AGENT_RETENTION_MS;
}

/** The customers of some sessions. A proof of an agent has none before its redemption. */
function customersOf(ids: string[]): string[] {
  return [...new Set(ids)].filter((id) => id !== '').sort();
}

function lockExpired(manager: EntityManager, expired: ExpiredSession[], before: Date): Promise<PurgedRow[]> {
  const ids = valueList(expired.map(({ id }) => id));
  const lock = selectStatement<SqlValue[], PurgedRow>(
    ({ forUpdate }) => `SELECT id, customer_id, browser_id, parent_id, parent_epoch, created_at FROM session
      WHERE id IN (${placeholdersFor(ids)}) AND expires_at < ?${forUpdate}`,
  );
  return selectIn(manager, lock, [...ids, before]);
}

/** The parent, or the first one above it that is not purged at the same time. */
function remainingAncestor(row: PurgedRow, purged: Map<string, PurgedRow>): PurgedRow {
  let { parent_id: parentId } = row;
  let last = row;
  while (parentId !== null && purged.has(parentId)) {
    last = purged.get(parentId) as PurgedRow;
    parentId = last.parent_id;
  }
  return last;
}
