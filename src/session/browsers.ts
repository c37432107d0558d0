import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import type { CustomerSpace } from '../customer/customer.js';
import { NEW_CUSTOMER, newCustomerRow } from '../customer/customers.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { sqlFlag } from '../platform/database/sql-dialect.js';
import { insertStatement, insertsTogether, selectStatement } from '../platform/database/statement.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { Browser } from './browser.entity.js';
import { leadingSessions } from './browser-recognition.js';
import { NEW_SESSION, newSessionRow } from './first-session.js';
import type { DeviceRow } from './session.statements.js';
import { Sessions } from './sessions.js';

/** A new visitor's rows are inserted with those of other visitors in one transaction. */
const NEW_BROWSER = insertStatement({ into: Browser, columns: ['browser_id', 'secret_hash', 'version'] });
const INSERT_VISITOR = insertsTogether(NEW_CUSTOMER, NEW_BROWSER, NEW_SESSION);

/** A browser to be created. */
export interface NewBrowser {
  browserId: string;
  secretHash: string;
  /** The browser's id and secret, as the cookie begins. */
  secret: string;
}

/** A customer that its browser creates together with itself, and the session that leads the browser to it. */
export interface NewVisitor extends CustomerSpace {
  entityId: string;
  sessionId: string;
  browser: NewBrowser;
  createdAt: number;
  expiresAt: Date;
}

/** Creates, locks and deletes browsers, and reads the sessions that lead them to customers (protocol §5.3). */
@Injectable()
export class Browsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly sessions: Sessions,
  ) {}

  /** A new browser, which the caller stores. */
  create(): NewBrowser {
    const browserId = uuidv7(this.clock.now());
    const secret = randomSecret('hex');
    return { browserId, secretHash: sha256(secret), secret: `${browserId.replaceAll('-', '')}${secret}` };
  }

  /** @throws ServiceUnavailableException if the database is unavailable; the rows may have been inserted */
  async insertVisitor({ entityId, sessionId, browser, createdAt, expiresAt, ...space }: NewVisitor): Promise<void> {
    const { browserId, secretHash } = browser;
    await this.database.insert(INSERT_VISITOR, [
      ...newCustomerRow(entityId, space, 'browser', createdAt),
      ...([browserId, secretHash, 0] as const),
      ...newSessionRow({
        ...space,
        entityId,
        sid: sessionId,
        now: createdAt,
        seenDay: dayOf(createdAt),
        expiresAt,
        browserId,
      }),
    ]);
  }

  async insertIn(manager: EntityManager, { browserId, secretHash }: NewBrowser): Promise<void> {
    await manager.insert(Browser, { browserId, secretHash, version: 0 });
  }

  /**
   * Locks the row of a browser in a transaction, by an UPDATE, so that two transactions that add sessions to one
   * browser, or let it lead to fewer customers, follow each other.
   *
   * @returns false if the browser is gone
   */
  async lockIn(manager: EntityManager, browserId: string): Promise<boolean> {
    return ((await manager.increment(Browser, { browserId }, 'version', 1)).affected ?? 0) > 0;
  }

  /** Locks the rows of some browsers, in the order of their ids. */
  async lockAllIn(manager: EntityManager, browserIds: string[]): Promise<void> {
    for (const portion of portionsOf([...new Set(browserIds)].sort()))
      await manager.increment(Browser, { browserId: In(valueList(portion)) }, 'version', 1);
  }

  /** The sessions of some browsers that lead to customers, the last seen first. */
  async leadingSessionsIn(manager: EntityManager, browserIds: string[]): Promise<DeviceRow[]> {
    return leadingSessions(await this.sessions.ofBrowsers(manager, browserIds), this.clock.now());
  }

  /**
   * Deletes those of some browsers that lead to no customer, so that their secrets stop working. The transaction has
   * locked the rows of the browsers: a parallel request that adds a session to one of them comes before or after it.
   *
   * @returns the deleted browsers
   */
  async deleteUnusedIn(manager: EntityManager, browserIds: string[]): Promise<string[]> {
    const unused: string[] = [];
    for (const portion of portionsOf([...new Set(browserIds)])) {
      const leading = await this.leadingSessionsIn(manager, portion);
      const used = new Set(leading.map(({ browser_id }) => browser_id));
      unused.push(...portion.filter((id) => !used.has(id)));
    }
    for (const portion of portionsOf(unused)) {
      const ids = In(valueList(portion));
      await this.sessions.detachIn(manager, { browserId: ids });
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
}
