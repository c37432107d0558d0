import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { RecordedValues } from '../access-token/recorded-values.js';
import { Clock, DAY_MS, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import { sqlFlag } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { uuidv7 } from '../platform/uuid.js';
import { COOKIE_MAX_AGE_SECONDS } from './identity-cookies.js';
import { raiseVersions, removeSecrets, unlinkIdle } from './links.js';

/** The lifetime of the cookies, and one day for clocks that differ and time zones. */
const IDLE_MS = COOKIE_MAX_AGE_SECONDS * 1000 + DAY_MS;

/**
 * Deletes browsers whose cookies have expired, with their links. Their customers are purged by `IdleCustomers`.
 *
 * Ids increase with time. The browsers that may be idle are therefore the first of the primary key. Days decide, so one
 * pass per day is enough.
 */
@Injectable()
export class IdleBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /**
   * Deletes in steps. The caller may stop after any step. Then the next purge repeats the pass, and deletes the rest of
   * a partly deleted browser. A browser's secret is removed first and its row is deleted last, so that no request
   * recognizes a partly deleted browser.
   *
   * @param size the number of rows that one statement reads or deletes
   * @returns the number of browsers that each step deleted
   */
  async *deleteInSteps(size: number): AsyncGenerator<number, void> {
    const now = this.clock.now();
    const today = dayOf(now);
    if ((await this.recorded.purgeDay('idle_browsers_purged_day')) === today) return;
    const idleSince = now - IDLE_MS;
    const day = dayOf(idleSince);
    const before = uuidv7(idleSince);
    const findNext = selectStatement<
      [day: number, after: string, before: string],
      { browser_id: string; seen: number }
    >(
      `SELECT browser_id, ${sqlFlag(`EXISTS (SELECT 1 FROM browser_customer link
          WHERE link.browser_id = browser.browser_id AND link.seen_day >= ?)`)} AS seen
        FROM browser WHERE browser_id > ? AND browser_id < ? ORDER BY browser_id LIMIT ${size}`,
    );
    let after: string | undefined = '';
    while (after !== undefined) {
      const rows: { browser_id: string; seen: number }[] = await this.database.select(findNext, [day, after, before]);
      yield 0;
      const unseen = rows.filter(({ seen }) => seen === 0).map(({ browser_id }) => browser_id);
      for (const portion of portionsOf(unseen)) yield* this.deletePortion(portion, day, size);
      after = rows.length < size ? undefined : rows.at(-1)?.browser_id;
    }
    await this.recorded.recordPurgeDay('idle_browsers_purged_day', today);
  }

  private async *deletePortion(browserIds: string[], day: number, size: number): AsyncGenerator<number, void> {
    const idle = await this.database.transaction((manager) => removeSecretsOfIdle(manager, browserIds, day));
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
async function removeSecretsOfIdle(manager: EntityManager, browserIds: string[], day: number): Promise<string[]> {
  await raiseVersions(manager, 'browser', browserIds);
  const list = valueList(browserIds);
  await unlinkIdle(manager, 'browserId', browserIds, day);
  const findSeen = selectStatement<(string | number)[], { browser_id: string }>(
    `SELECT DISTINCT browser_id FROM browser_customer WHERE browser_id IN (${placeholdersFor(list)}) AND seen_day >= ?`,
  );
  const seen = new Set((await selectIn(manager, findSeen, [...list, day])).map(({ browser_id }) => browser_id));
  const idle = browserIds.filter((id) => !seen.has(id));
  await removeSecrets(manager, idle);
  return idle;
}
