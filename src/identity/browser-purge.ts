import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ofExpiredRevocations } from '../access-token/ended-statement.js';
import { RecordedValues } from '../access-token/recorded-values.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { LinkLifetime, lastDayIfIdle } from './link-lifetime.js';
import { type LinkKey, raiseVersions, removeSecrets, unlink, unlinkIdle } from './links.js';

/** The number of links of one step, within which the purge holds its lease. */
const LINKS_PER_STEP_COUNT = 50;

/** A browser has at most 500 links. One statement reads those of so many browsers within its time. */
const BROWSERS_PER_SELECT_COUNT = 500;

interface FoundBrowser {
  browser_id: string;
  is_retained: number;
}

/**
 * The links that retain their browsers. A link that leads nowhere retains its browser too, because its day is that of a
 * token of its customer.
 */
const RETAINING_LINKS = `browser_customer link JOIN customer ON customer.entity_id = link.entity_id
  WHERE ${lastDayIfIdle('link.seen_day', 'customer.organization_id')} >= ?`;

const IS_RETAINED = `EXISTS (SELECT 1 FROM ${RETAINING_LINKS} AND link.browser_id = browser.browser_id)`;

const FIND_NEXT = selectStatement<SqlValue[], FoundBrowser>(
  `SELECT browser_id, ${sqlFlag(IS_RETAINED)} AS is_retained
    FROM browser WHERE browser_id > ? AND browser_id < ? ORDER BY browser_id LIMIT ${BROWSERS_PER_SELECT_COUNT}`,
);

/** Purges browsers and their links. Their customers are purged by `IdleCustomers`. */
@Injectable()
export class BrowserPurge {
  constructor(
    private readonly database: Database,
    private readonly lifetime: LinkLifetime,
    private readonly recorded: RecordedValues,
  ) {}

  /**
   * Ends the links that expired revocations have ended, until none is left. Only after all steps may the caller delete
   * these revocations. Otherwise the links would lead to their customers again (protocol §3.14).
   *
   * @param size the number of links that one statement reads
   * @param now the time with which the caller then deletes the expired revocations
   * @returns the number of links that each step ended
   */
  async *endRevokedInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const findEnded = selectStatement<[now: Date], LinkKey>(
      `SELECT DISTINCT ancestor.browser_id AS browserId, ancestor.entity_id AS entityId
        FROM ${ofExpiredRevocations('link_ancestor ancestor', 'ancestor.ancestor_id')} LIMIT ${size}`,
    );
    let rows = await this.database.select(findEnded, [now]);
    while (rows.length > 0) {
      for (const links of portionsOf(rows, LINKS_PER_STEP_COUNT)) {
        await this.database.transaction(async (manager) => {
          // `remember` raises the versions of the customers whose links it copies too, so that it copies none of these
          const ids = links.map(({ entityId }) => entityId);
          await raiseVersions(manager, 'customer', ids);
          await unlink(manager, links);
        });
        yield links.length;
      }
      rows = await this.database.select(findEnded, [now]);
    }
  }

  /**
   * Deletes browsers whose links are all idle, with these links (protocol §5.9). If the caller stops after a step, the
   * next purge repeats the pass, and deletes the rest of a partly deleted browser. So that no request recognizes a
   * partly deleted browser, its secret is removed first and its row is deleted last.
   *
   * Ids increase with time, so the browsers that may be idle come first in the primary key. One pass per day is enough,
   * because whether a link is idle depends on whole days.
   *
   * @param size the number of links that one statement deletes
   * @param now the time of the purge
   * @returns the number of browsers that each step deleted
   */
  async *deleteIdleInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const { today, createdBefore } = await this.lifetime.idlePass(now);
    if ((await this.recorded.purgeDay('idle_browsers_purged_day')) === today) return;
    let after: string | undefined = '';
    while (after !== undefined) {
      const parameters = [today, after, createdBefore];
      const rows: FoundBrowser[] = await this.database.select(FIND_NEXT, parameters);
      yield 0;
      const idle = rows.filter(({ is_retained }) => is_retained === 0).map(({ browser_id }) => browser_id);
      for (const portion of portionsOf(idle)) yield* this.deletePortion(portion, today, size);
      after = rows.length < BROWSERS_PER_SELECT_COUNT ? undefined : rows.at(-1)?.browser_id;
    }
    await this.recorded.recordPurgeDay('idle_browsers_purged_day', today);
  }

  private async *deletePortion(browserIds: string[], today: number, size: number): AsyncGenerator<number, void> {
    const idle = await this.database.transaction((manager) => removeSecretsOfIdle(manager, browserIds, today));
    if (idle.length === 0) return;
    const list = valueList(idle);
    const condition = `browser_id IN (${placeholdersFor(list)})`;
    const deleteSome = writeStatement<string[]>(({ deleteInOrder }) =>
      deleteInOrder('browser_customer', condition, 'browser_id, entity_id', size),
    );
    let deleted = size;
    while (deleted === size) {
      deleted = await this.database.execute(deleteSome, list);
      yield 0;
    }
    await this.database.execute(writeStatement<string[]>(`DELETE FROM browser WHERE ${condition}`), list);
    yield idle.length;
  }
}

/**
 * Removes the secrets of browsers that are idle. A visit of one of them has noted its day before, or finds no secret
 * afterwards: it changes the row of the browser, or that of a link that this transaction locks.
 *
 * @returns the idle browsers
 */
async function removeSecretsOfIdle(manager: EntityManager, browserIds: string[], today: number): Promise<string[]> {
  await raiseVersions(manager, 'browser', browserIds);
  await unlinkIdle(manager, 'browser_id', browserIds, today);
  const list = valueList(browserIds);
  const findRetained = selectStatement<SqlValue[], { browser_id: string }>(
    `SELECT DISTINCT link.browser_id FROM ${RETAINING_LINKS} AND link.browser_id IN (${placeholdersFor(list)})`,
  );
  const rows = await selectIn(manager, findRetained, [today, ...list]);
  const retained = new Set(rows.map(({ browser_id }) => browser_id));
  const idle = browserIds.filter((id) => !retained.has(id));
  await removeSecrets(manager, idle);
  return idle;
}
