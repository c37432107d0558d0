import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { DELETE_UNUSED_ANCESTORS } from './link-statements.js';

/**
 * The secret hash of a browser that is being deleted. No secret has this hash, so no request recognises the browser.
 */
export const NO_SECRET = '';

/** The tables with rows of browsers, and the order in which their rows are deleted. */
const TABLES_OF_LINKS = { browser_link: 'browser_id, organization_id, group_id', link_credential: 'hash' };

/** Deletes browsers that have no secret any more, with their customers and links. */
@Injectable()
export class BrowserDeletion {
  constructor(private readonly database: Database) {}

  /**
   * Deletes in steps of at most `size` rows. The browser's own row is the last one, so that the next purge deletes the
   * rest if the caller stops.
   *
   * @returns the number of customers that each step deleted
   */
  async *deleteInSteps(browsers: string[], size: number): AsyncGenerator<number, void> {
    if (browsers.length === 0) return;
    const placeholders = placeholdersFor(browsers);
    for await (const _deleted of this.deleteLinks(browsers, size)) yield 0;
    const others = `browser_id IN (${placeholders}) AND entity_id <> browser_id`;
    yield* this.deleteRows('customer_identity', others, 'browser_id, organization_id, group_id', browsers, size);
    const deleteOwn = writeStatement<string[]>(
      `DELETE FROM customer_identity WHERE entity_id IN (${placeholders}) AND secret_hash = ?`,
    );
    yield await this.database.execute(deleteOwn, [...browsers, NO_SECRET]);
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

/** A list with a placeholder for each value. */
export function placeholdersFor(values: string[]): string {
  return values.map(() => '?').join();
}
