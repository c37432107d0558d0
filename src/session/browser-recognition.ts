import { Injectable } from '@nestjs/common';
import type { SessionClaims } from '../access-token/session-claims.js';
import type { CustomerSpace } from '../customer/customer.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, type OrNull, selectStatement, writeStatement } from '../platform/database/statement.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { AGENT_COLUMNS, AGENT_JOIN, type AgentColumns, actOf, agentHasEnded } from './agent/agent-columns.js';
import type { Browser } from './browser.entity.js';
import type { Session, SessionKind } from './session.entity.js';
import { SessionLifetime } from './session-lifetime.js';

/** How many pairs of identity cookies of one request are tried (protocol §5.4). */
export const MAX_PAIRS = 4;

const PAIR_PLACEHOLDERS = Array(MAX_PAIRS).fill('?').join();

/** A pair of identity cookies that were set together. */
export interface BrowserPair {
  /** The `entity_id` of the customer that the pair was set for. */
  entityId: string;
  browserId: string;
  secret: string;
  /** The browser's id and secret, as the cookie begins. */
  cookie: string;
}

type BrowserRow = EntityRow<Browser, 'browser_id' | 'secret_hash'>;

/** A browser with its session in the requested organization and group, if there is one. */
type RecognizedRow = BrowserRow &
  OrNull<EntityRow<Session, 'id' | 'kind' | 'customer_id' | 'epoch' | 'seen_day' | 'signed_in_day' | 'expires_at'>> &
  AgentColumns & {
    generation: number | null;
    has_user: boolean | number | null;
  };

const RECOGNIZED_COLUMNS = [
  ...['browser.browser_id', 'browser.secret_hash'],
  ...['session.id', 'session.kind', 'session.customer_id', 'session.epoch', 'session.seen_day'],
  ...['session.signed_in_day', 'session.expires_at', 'customer.generation', 'customer.has_user', ...AGENT_COLUMNS],
];

/** Reads by keys only. It has joins, because MariaDB plans a subquery at each execution. */
const RECOGNIZED_FROM = `browser
  LEFT JOIN session
    ON session.browser_id = browser.browser_id AND session.organization_id = ? AND session.group_id = ?
  LEFT JOIN customer ON customer.entity_id = session.customer_id
  ${AGENT_JOIN}`;

const RECOGNIZE = selectStatement<[organizationId: string, groupId: string, browserId: string], RecognizedRow>({
  columns: RECOGNIZED_COLUMNS,
  from: `${RECOGNIZED_FROM} WHERE browser.browser_id = ?`,
  batch: true,
});

/** Reads what `RECOGNIZE` reads, for several cookie pairs. */
const RECOGNIZE_ANY = selectStatement<string[], RecognizedRow>(
  `SELECT ${RECOGNIZED_COLUMNS.join(', ')} FROM ${RECOGNIZED_FROM} WHERE browser.browser_id IN (${PAIR_PLACEHOLDERS})`,
);

const LEADING_COLUMNS = ['id', 'kind', 'customer_id', 'organization_id', 'group_id', 'seen_day', 'expires_at'] as const;

/** A session that leads a browser to a customer. */
export type LeadingSession = EntityRow<Session, (typeof LEADING_COLUMNS)[number]> & AgentColumns;

/** Some browsers with their sessions in all organizations. */
const FIND_LEADING = selectStatement<string[], BrowserRow & OrNull<LeadingSession>>(
  `SELECT ${['browser.browser_id', 'browser.secret_hash', ...LEADING_COLUMNS.map((column) => `session.${column}`), ...AGENT_COLUMNS].join(', ')}
    FROM browser LEFT JOIN session ON session.browser_id = browser.browser_id ${AGENT_JOIN}
    WHERE browser.browser_id IN (${PAIR_PLACEHOLDERS})`,
);

/** Matches no row if the session was ended, purged or forgotten, or if a parallel request has noted the day. */
const NOTE_VISIT = writeStatement<[today: number, expiresAt: Date, id: string, browserId: string, seenDay: number]>(
  'UPDATE session SET seen_day = ?, expires_at = ? WHERE id = ? AND browser_id = ? AND seen_day = ?',
);

/** A session with which a browser leads to a customer, in the requested organization and group. */
export interface BrowserSession {
  id: string;
  kind: SessionKind;
  entityId: string;
  seenDay: number;
  signedInDay: number | null;
  expiresAt: Date;
  /** Whether the customer is a user of the organization. */
  hasUser: boolean;
  /** The claims of the tokens that it gives. */
  claims: SessionClaims;
}

/** A browser that was recognized by its secret. */
export interface RecognizedBrowser {
  browserId: string;
  /** The browser's id and secret, as the cookie begins. */
  secret: string;
  /** The session in the requested organization and group; `undefined` if there is none, or if it has ended. */
  session: BrowserSession | undefined;
}

/** A browser that was recognized by its secret, with its sessions in all organizations. */
export interface LeadingBrowser {
  browserId: string;
  /** The browser's id and secret, as the cookie begins. */
  secret: string;
  /** The sessions that lead it to customers, the last seen first. */
  leading: LeadingSession[];
}

/** Recognizes browsers by the pairs of identity cookies of a request (protocol §5.3 and §5.4). */
@Injectable()
export class BrowserRecognition {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly lifetime: SessionLifetime,
  ) {}

  /** Finds the browser of one of the pairs: the one created last if there are several (protocol §5.4). */
  async recognize(pairs: BrowserPair[], space: CustomerSpace): Promise<RecognizedBrowser | undefined> {
    const browsers: RecognizedBrowser[] = [];
    for (const row of await this.rowsOf(pairs, space)) {
      const pair = pairOf(row, pairs);
      if (pair) browsers.push({ browserId: row.browser_id, secret: pair.cookie, session: this.sessionOf(row) });
    }
    return browsers.sort(byCreation)[0];
  }

  /** Finds the browsers of all pairs, the one created last first, with all sessions that lead them to customers. */
  async leadingOf(pairs: BrowserPair[]): Promise<LeadingBrowser[]> {
    if (pairs.length === 0) return [];
    const browsers = new Map<string, LeadingBrowser>();
    for (const row of await this.database.select(FIND_LEADING, paddedIds(pairs))) {
      const pair = pairOf(row, pairs);
      if (!pair) continue;
      const browser = browsers.get(row.browser_id) ?? { browserId: row.browser_id, secret: pair.cookie, leading: [] };
      if (row.id !== null) browser.leading.push(row as LeadingSession);
      browsers.set(row.browser_id, browser);
    }
    const now = this.clock.now();
    for (const browser of browsers.values()) browser.leading = leadingSessions(browser.leading, now);
    return [...browsers.values()].sort(byCreation);
  }

  /**
   * Notes the first visit of a day, so that the session is not idle.
   *
   * @returns false if the browser does not lead to the customer any more, or a parallel request has noted the day
   */
  async noteVisit(browserId: string, organizationId: string, session: BrowserSession): Promise<boolean> {
    const seenDay = dayOf(this.clock.now());
    if (session.seenDay >= seenDay) return true;
    const end = this.lifetime.expiryOf(organizationId, { ...session, seenDay });
    // a setting that became shorter counts at the next purge
    const expiresAt = end.getTime() <= this.clock.now() ? session.expiresAt : end;
    const values = [seenDay, expiresAt, session.id, browserId, session.seenDay] as const;
    return (await this.database.execute(NOTE_VISIT, [...values])) > 0;
  }

  private async rowsOf(pairs: BrowserPair[], { organizationId, groupId }: CustomerSpace): Promise<RecognizedRow[]> {
    const [first] = pairs;
    if (!first) return [];
    if (pairs.length === 1) return this.database.select(RECOGNIZE, [organizationId, groupId, first.browserId]);
    return this.database.select(RECOGNIZE_ANY, [organizationId, groupId, ...paddedIds(pairs)]);
  }

  private sessionOf(row: RecognizedRow): BrowserSession | undefined {
    const { id, expires_at } = row;
    if (id === null || timeOf(expires_at as Date) <= this.clock.now() || agentHasEnded(row)) return undefined;
    return {
      ...{ id, kind: row.kind as SessionKind, entityId: row.customer_id as string },
      ...{ seenDay: row.seen_day as number, signedInDay: row.signed_in_day },
      expiresAt: new Date(timeOf(expires_at as Date)),
      hasUser: Boolean(row.has_user),
      claims: { gen: row.generation as number, sid: id, ep: row.epoch as number, ...actOf(row) },
    };
  }
}

/** Those of the sessions of a browser that have not expired or ended, the last seen first. */
export function leadingSessions<Row extends AgentColumns & EntityRow<Session, 'seen_day' | 'expires_at'>>(
  sessions: Row[],
  now: number,
): Row[] {
  return sessions
    .filter((session) => !agentHasEnded(session) && timeOf(session.expires_at) > now)
    .sort((one, other) => (other.seen_day ?? 0) - (one.seen_day ?? 0));
}

/** Whether a session leads a browser to a customer of an organization, or of a group of it. */
export function isIn(
  session: EntityRow<Session, 'organization_id' | 'group_id'>,
  { organizationId, groupId }: CustomerSpace,
): boolean {
  return session.organization_id === organizationId && session.group_id === groupId;
}

/** The browsers of some pairs, as many ids as the statements have parameters. */
function paddedIds(pairs: BrowserPair[]): string[] {
  return Array.from({ length: MAX_PAIRS }, (_, index) => (pairs[index] ?? (pairs[0] as BrowserPair)).browserId);
}

function pairOf({ browser_id, secret_hash }: BrowserRow, pairs: BrowserPair[]): BrowserPair | undefined {
  return pairs.find(
    ({ browserId, secret }) => browserId === browser_id && equalInConstantTime(secret_hash, sha256(secret)),
  );
}

/** The one created last first. */
function byCreation(one: { browserId: string }, other: { browserId: string }): number {
  return one.browserId < other.browserId ? 1 : -1;
}
