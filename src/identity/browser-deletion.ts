import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { BrowserCustomerErasure } from './browser-customer-erasure.js';
import { IS_ERASED, isDeletable, NO_SECRET } from './deletable-customers.js';
import { DELETE_UNUSED_ANCESTORS } from './link-statements.js';

/** The tables with rows of browsers, and the order in which their rows are deleted. */
const TABLES_OF_LINKS = { browser_link: 'browser_id, organization_id, group_id', link_credential: 'hash' };

/** Only the id and the generation of an erased customer remain when its browser is deleted. */
const DETACH = 'UPDATE customer_identity SET browser_id = NULL, secret_hash = NULL, last_seen_day = NULL';

const IS_OTHER = 'entity_id <> browser_id';

/** Deletes browsers that have no secret any more, with their customers and links, and retains generations. */
@Injectable()
export class BrowserDeletion {
  constructor(
    private readonly database: Database,
    private readonly erasure: BrowserCustomerErasure,
  ) {}

  /**
   * Deletes in steps of at most `size` rows. The browser's own row is the last one, so that the next purge deletes the
   * rest if the caller stops.
   *
   * @param day the first day that is not idle
   * @returns the number of customers that each step deleted
   */
  async *deleteInSteps(browsers: string[], day: number, size: number): AsyncGenerator<number, void> {
    for (const portion of portionsOf(browsers)) yield* this.deletePortion(valueList(portion), day, size);
  }

  private async *deletePortion(browsers: string[], day: number, size: number): AsyncGenerator<number, void> {
    for await (const _deleted of this.deleteLinks(browsers, size)) yield 0;
    const others = `browser_id IN (${placeholdersFor(browsers)}) AND ${IS_OTHER}`;
    yield* this.erasure.eraseInSteps(others, browsers, day, size);
    const deletable = `${others} AND ${isDeletable(day)}`;
    yield* this.deleteRows('customer_identity', deletable, 'browser_id, organization_id, group_id', browsers, size);
    for await (const _detached of this.detachErased(`${others} AND ${IS_ERASED}`, browsers, size)) yield 0;
    yield* this.deleteOwnRows(browsers, day, size);
  }

  /** The row of a browser with another customer stays, because the purge finds the customer by the browser. */
  private async *deleteOwnRows(browsers: string[], day: number, size: number): AsyncGenerator<number, void> {
    const findRemaining = selectStatement<string[], { browser_id: string }>(
      `SELECT DISTINCT browser_id FROM customer_identity
        WHERE browser_id IN (${placeholdersFor(browsers)}) AND ${IS_OTHER} AND NOT (${IS_ERASED})`,
    );
    const remaining = new Set((await this.database.select(findRemaining, browsers)).map((row) => row.browser_id));
    const withoutRemaining = browsers.filter((browser) => !remaining.has(browser));
    if (withoutRemaining.length === 0) return;
    const deletable = valueList(withoutRemaining);
    const own = `entity_id IN (${placeholdersFor(deletable)}) AND secret_hash = ?`;
    yield* this.erasure.eraseInSteps(own, [...deletable, NO_SECRET], day, size);
    const deleteOwn = writeStatement<string[]>(`DELETE FROM customer_identity WHERE ${own} AND ${isDeletable(day)}`);
    const detachOwn = writeStatement<string[]>(`${DETACH} WHERE ${own} AND ${IS_ERASED}`);
    const deleted = await this.database.execute(deleteOwn, [...deletable, NO_SECRET]);
    await this.database.execute(detachOwn, [...deletable, NO_SECRET]);
    yield deleted;
  }

  private async *detachErased(condition: string, browsers: string[], size: number): AsyncGenerator<number, void> {
    const findErased = selectStatement<string[], { entity_id: string }>(
      `SELECT entity_id FROM customer_identity WHERE ${condition} LIMIT ${size}`,
    );
    let found = size;
    while (found === size) {
      const erased = (await this.database.select(findErased, browsers)).map(({ entity_id }) => entity_id);
      found = erased.length;
      for (const portion of portionsOf(erased)) {
        const ids = valueList(portion);
        const detach = writeStatement<string[]>(`${DETACH} WHERE entity_id IN (${placeholdersFor(ids)})`);
        await this.database.execute(detach, ids);
        yield portion.length;
      }
    }
  }

  private async *deleteLinks(browsers: string[], size: number): AsyncGenerator<number, void> {
    const condition = `browser_id IN (${placeholdersFor(browsers)})`;
    const findRedemptions = selectStatement<string[], { redemption: string }>(
      `SELECT DISTINCT redemption FROM browser_link WHERE redemption IS NOT NULL AND ${condition}`,
    );
    const redemptions = await this.database.select(findRedemptions, browsers);
    for (const [table, order] of Object.entries(TABLES_OF_LINKS))
      yield* this.deleteRows(table, condition, order, browsers, size);
    for (const { redemption } of redemptions) await this.database.execute(DELETE_UNUSED_ANCESTORS, [redemption]);
    yield* this.deleteRows('browser_origin', condition, 'browser_id', browsers, size);
  }

  private async *deleteRows(
    table: string,
    condition: string,
    order: string,
    browsers: string[],
    size: number,
  ): AsyncGenerator<number, void> {
    const deleteSome = writeStatement<string[]>(({ deleteInOrder }) => deleteInOrder(table, condition, order, size));
    let deleted = size;
    while (deleted === size) {
      deleted = await this.database.execute(deleteSome, browsers);
      yield deleted;
    }
  }
}
