import { Injectable } from '@nestjs/common';
import { type EntityManager, type FindOptionsWhere, In } from 'typeorm';
import type { SessionClaims } from '../access-token/token-claims.js';
import type { CustomerSpace } from '../customer/customer.js';
import { Clock, DAY_MS, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag, timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, type OrNull, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { equalInConstantTime, randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { AGENT_COLUMNS, AGENT_JOIN, type AgentColumns, actOf, agentHasEnded } from './agent/agent-columns.js';
import { Browser } from './browser.entity.js';
import { type BrowserPair, MAX_PAIRS_COUNT } from './browser-pair.js';
import { Session, type SessionKind } from './session.entity.js';
import { SessionLifetime } from './session-lifetime.js';

const SESSION_COLUMNS = [
  'id',
  'kind',
  'customer_id',
  'organization_id',
  'group_id',
  'epoch',
  'parent_id',
  'parent_epoch',
  'depth',
  'client_id',
  'seen_day',
  'signed_in_day',
  'created_at',
  'expires_at',
] as const;

/** A session of a browser. */
export type SessionRow = EntityRow<Session, (typeof SESSION_COLUMNS)[number]> & AgentColumns;

const SESSION_LIST = [...SESSION_COLUMNS.map((column) => `session.${column}`), ...AGENT_COLUMNS].join(', ');

/** A browser with its session in the requested organization and group, if there is one. */
type RecognizedRow = EntityRow<Browser, 'browser_id' | 'secret_hash'> &
  OrNull<Pick<SessionRow, 'id' | 'kind' | 'customer_id' | 'epoch' | 'seen_day' | 'signed_in_day' | 'expires_at'>> &
  AgentColumns & {
    generation: number | null;
  };

const RECOGNIZED_COLUMNS = [
  ...['browser.browser_id', 'browser.secret_hash'],
  ...['session.id', 'session.kind', 'session.customer_id', 'session.epoch', 'session.seen_day'],
  ...['session.signed_in_day', 'session.expires_at', 'customer.generation', ...AGENT_COLUMNS],
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

/** The same for several pairs. */
const RECOGNIZE_ANY = selectStatement<string[], RecognizedRow>(
  `SELECT ${RECOGNIZED_COLUMNS.join(', ')} FROM ${RECOGNIZED_FROM}
    WHERE browser.browser_id IN (${Array(MAX_PAIRS_COUNT).fill('?').join()})`,
);

/** Matches no row if the session was ended, purged or forgotten, or if a parallel request has noted the day. */
const NOTE_VISIT = writeStatement<[today: number, expiresAt: Date, id: string, browserId: string, seenDay: number]>(
  'UPDATE session SET seen_day = ?, expires_at = ? WHERE id = ? AND browser_id = ? AND seen_day = ?',
);

const FIND_SESSIONS = selectStatement<[browserId: string], SessionRow>(
  `SELECT ${SESSION_LIST} FROM session ${AGENT_JOIN} WHERE session.browser_id = ?`,
);

type LeadingRow = EntityRow<Browser, 'browser_id' | 'secret_hash'> & OrNull<SessionRow>;

/** Some browsers with their sessions in all organizations. */
const FIND_LEADING = selectStatement<string[], LeadingRow>(
  `SELECT browser.browser_id, browser.secret_hash, ${SESSION_LIST}
    FROM browser LEFT JOIN session ON session.browser_id = browser.browser_id ${AGENT_JOIN}
    WHERE browser.browser_id IN (${Array(MAX_PAIRS_COUNT).fill('?').join()})`,
);

/** A session with which a browser leads to a customer. */
export interface BrowserSession {
  id: string;
  kind: SessionKind;
  entityId: string;
  seenDay: number;
  signedInDay: number | null;
  expiresAt: Date;
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
  leading: SessionRow[];
}

/** A browser to be created. */
export interface NewBrowser {
  browserId: string;
  secretHash: string;
  /** The browser's id and secret, as the cookie begins. */
  secret: string;
}

/** Browsers, and the sessions that lead them to customers (protocol §5.3). */
@Injectable()
export class Browsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly lifetime: SessionLifetime,
  ) {}

  /** A new browser, which the caller stores. */
  create(): NewBrowser {
    const browserId = uuidv7(this.clock.now());
    const secret = randomSecret('hex');
    return { browserId, secretHash: sha256(secret), secret: `${browserId.replaceAll('-', '')}${secret}` };
  }

  /** Finds the browser of one of the pairs: the one created last if there are several (protocol §5.4). */
  async recognize(pairs: BrowserPair[], space: CustomerSpace): Promise<RecognizedBrowser | undefined> {
    const browsers: RecognizedBrowser[] = [];
    for (const row of await this.rowsOf(pairs, space)) {
      const pair = pairs.find((each) => isOf(each, row));
      if (pair) browsers.push({ browserId: row.browser_id, secret: pair.cookie, session: this.sessionOf(row) });
    }
    return browsers.sort(byCreation)[0];
  }

  /** Finds the browsers of all pairs, the one created last first, with all sessions that lead them to customers. */
  async leadingOf(pairs: BrowserPair[]): Promise<LeadingBrowser[]> {
    if (pairs.length === 0) return [];
    const browsers = new Map<string, LeadingBrowser>();
    for (const row of await this.database.select(FIND_LEADING, paddedIds(pairs))) {
      const pair = pairs.find((each) => isOf(each, row));
      if (!pair) continue;
      const browser = browsers.get(row.browser_id) ?? { browserId: row.browser_id, secret: pair.cookie, leading: [] };
      if (row.id !== null) browser.leading.push(row as SessionRow);
      browsers.set(row.browser_id, browser);
    }
    const found = [...browsers.values()].sort(byCreation);
    return found.map((browser) => ({ ...browser, leading: this.leading(browser.leading) }));
  }

  /**
   * Notes the first visit of a day, so that the session is not idle.
   *
   * @returns false if the browser does not lead to the customer any more, or a parallel request has noted the day
   */
  async noteVisit(browserId: string, organizationId: string, session: BrowserSession): Promise<boolean> {
    const seenDay = this.today();
    if (session.seenDay >= seenDay) return true;
    const end = this.lifetime.expiryOf(organizationId, { ...session, seenDay });
    // a setting that became shorter counts at the next purge
    const expiresAt = end.getTime() <= this.clock.now() ? session.expiresAt : end;
    const values = [seenDay, expiresAt, session.id, browserId, session.seenDay] as const;
    return (await this.database.execute(NOTE_VISIT, [...values])) > 0;
  }

  /**
   * Changes the row of a browser in a transaction, so that two transactions that add sessions to one browser, or let it
   * lead to fewer customers, follow each other.
   *
   * @returns false if the browser is gone
   */
  async writeIn(manager: EntityManager, browserId: string): Promise<boolean> {
    return ((await manager.increment(Browser, { browserId }, 'version', 1)).affected ?? 0) > 0;
  }

  async insertIn(manager: EntityManager, { browserId, secretHash }: NewBrowser): Promise<void> {
    await manager.insert(Browser, { browserId, secretHash, version: 0 });
  }

  /** The sessions of a browser that lead to customers, the last seen first. */
  async leadingSessionsIn(manager: EntityManager, browserId: string): Promise<SessionRow[]> {
    return this.leading(await selectIn(manager, FIND_SESSIONS, [browserId]));
  }

  /**
   * Lets a browser no longer lead to customers. Their tokens and devices stay: the sessions remain without the browser, as
   * long as an access token may live.
   *
   * @param organizationId if omitted, of all organizations
   * @param groupId if omitted, of all groups
   */
  async detachIn(manager: EntityManager, browserId: string, organizationId?: string, groupId?: string): Promise<void> {
    const ofOrganization = organizationId !== undefined && { organizationId };
    const ofGroup = groupId !== undefined && { groupId };
    await this.detach(manager, { browserId, ...ofOrganization, ...ofGroup });
  }

  /** The same for one session. */
  async detachOneIn(manager: EntityManager, browserId: string, id: string): Promise<void> {
    await this.detach(manager, { browserId, id });
  }

  /**
   * Deletes those of some browsers that lead to no customer, so that their secrets stop working. The transaction has
   * changed the rows of the browsers: a parallel request that adds a session to one of them comes before or after it.
   *
   * @returns the deleted browsers
   */
  async deleteUnusedIn(manager: EntityManager, browserIds: string[]): Promise<string[]> {
    const unused: string[] = [];
    for (const portion of portionsOf([...new Set(browserIds)])) {
      const list = valueList(portion);
      const find = selectStatement<SqlValue[], SessionRow & { browser_id: string }>(
        `SELECT session.browser_id, ${SESSION_LIST} FROM session ${AGENT_JOIN}
          WHERE session.browser_id IN (${placeholdersFor(list)})`,
      );
      const leading = this.leading(await selectIn(manager, find, list));
      const used = new Set(leading.map(({ browser_id }) => browser_id));
      unused.push(...portion.filter((id) => !used.has(id)));
    }
    for (const portion of portionsOf(unused)) {
      const ids = In(valueList(portion));
      await this.detach(manager, { browserId: ids });
      await manager.delete(Browser, { browserId: ids });
    }
    return unused;
  }

  /**
   * Reads the next browsers in the order of their ids.
   *
   * @param after the `next` of the page before; the empty string for the first one
   * @param limit the number of browsers that are read
   * @returns those of them that have no session, and where the next page begins
   */
  async findUnused(after: string, limit: number): Promise<{ unused: string[]; next: string | undefined }> {
    const hasSession = 'EXISTS (SELECT 1 FROM session WHERE session.browser_id = browser.browser_id)';
    const find = selectStatement<[after: string], { browser_id: string; has_session: number }>(
      `SELECT browser_id, ${sqlFlag(hasSession)} AS has_session FROM browser
        WHERE browser_id > ? ORDER BY browser_id LIMIT ${limit}`,
    );
    const rows = await this.database.select(find, [after]);
    const unused = rows.filter(({ has_session }) => has_session === 0).map(({ browser_id }) => browser_id);
    return { unused, next: rows.length < limit ? undefined : rows.at(-1)?.browser_id };
  }

  /** Changes the rows of some browsers, in the order of their ids. */
  async writeAllIn(manager: EntityManager, browserIds: string[]): Promise<void> {
    for (const portion of portionsOf([...new Set(browserIds)].sort()))
      await manager.increment(Browser, { browserId: In(valueList(portion)) }, 'version', 1);
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
      claims: { gen: row.generation as number, sid: id, ep: row.epoch as number, ...actOf(row) },
    };
  }

  private leading<Row extends SessionRow>(rows: Row[]): Row[] {
    const now = this.clock.now();
    return rows
      .filter((row) => !agentHasEnded(row) && timeOf(row.expires_at) > now)
      .sort((one, other) => (other.seen_day ?? 0) - (one.seen_day ?? 0));
  }

  /** A session that has no browser any more may begin what its last access token allows, unless it ends before. */
  private async detach(manager: EntityManager, sessions: FindOptionsWhere<Session>): Promise<void> {
    const end = new Date(this.clock.now() + DAY_MS);
    const expiresAt = () => 'CASE WHEN expires_at > :end THEN :end ELSE expires_at END';
    await manager
      .createQueryBuilder()
      .update(Session)
      .set({ browserId: null, organizationId: null, groupId: null, expiresAt })
      .where(sessions)
      .setParameter('end', end)
      .execute();
  }

  private today(): number {
    return dayOf(this.clock.now());
  }
}

/** The browsers of some pairs, as many ids as the statements have parameters. */
function paddedIds(pairs: BrowserPair[]): string[] {
  return Array.from({ length: MAX_PAIRS_COUNT }, (_, index) => (pairs[index] ?? (pairs[0] as BrowserPair)).browserId);
}

/** Whether a session leads a browser to a customer of an organization, or of a group of it. */
export function isIn(
  session: Pick<SessionRow, 'organization_id' | 'group_id'>,
  { organizationId, groupId }: CustomerSpace,
): boolean {
  return session.organization_id === organizationId && session.group_id === groupId;
}

/** The one created last first. */
function byCreation(one: { browserId: string }, other: { browserId: string }): number {
  return one.browserId < other.browserId ? 1 : -1;
}

function isOf({ browserId, secret }: BrowserPair, row: Pick<RecognizedRow, 'browser_id' | 'secret_hash'>): boolean {
  return browserId === row.browser_id && equalInConstantTime(row.secret_hash, sha256(secret));
}
