import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import type { SqlValue } from '../platform/database/sql-value.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { MAX_LIST_VALUES, placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { DAY_MS, dayOf } from '../platform/day.js';
import { uuidv7 } from '../platform/uuid.js';
import { BrowserDeletion } from './browser-deletion.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { NO_SECRET } from './deletable-customers.js';
import { COOKIE_MAX_AGE_SECONDS } from './identity-cookies.js';

type OldRow = EntityRow<CustomerIdentity, 'entity_id' | 'last_seen_day'>;

type Customer = NotNull<EntityRow<CustomerIdentity, 'entity_id' | 'browser_id' | 'organization_id' | 'group_id'>> &
  EntityRow<CustomerIdentity, 'generation' | 'last_token_day'>;

/** The lifetime of the cookies, and one day for clocks that differ and time zones. */
const IDLE_MS = COOKIE_MAX_AGE_SECONDS * 1000 + DAY_MS;

/**
 * Deletes browsers whose cookies have expired, with their customers. Customers of agents have no browser and remain.
 *
 * Ids increase with time. The rows that may be idle are therefore the first of the primary key and need no other index.
 */
@Injectable()
export class IdleBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly participants: CustomerDataParticipants,
    private readonly deletion: BrowserDeletion,
  ) {}

  /**
   * Deletes in steps. No statement reads or deletes more than `size` rows, because a browser may have many customers.
   *
   * The caller may stop after any step. The secret of a browser is deleted first and the browser's own row last. So no
   * request recognises a partly deleted browser, and the next purge deletes the rest.
   *
   * @returns the number of identities that each step deleted
   */
  async *deleteInSteps(size: number): AsyncGenerator<number, void> {
    const idleSince = this.clock.now() - IDLE_MS;
    const day = dayOf(idleSince);
    const before = uuidv7(idleSince);
    let after: string | undefined = '';
    while (after !== undefined) {
      const old = await this.rowsBetween(after, before, size);
      yield 0;
      const unseen = old.filter((row) => row.last_seen_day !== null && row.last_seen_day < day);
      for (const browsers of portionsOf(unseen.map((row) => row.entity_id))) {
        const idle = yield* this.withoutRetained(browsers, day, size);
        yield* this.deletion.deleteInSteps(await this.removeSecrets(idle, day), day, size);
      }
      after = old.length < size ? undefined : old.at(-1)?.entity_id;
    }
  }

  /** The next rows by key only. With a condition on the day one statement could scan many rows that are not idle. */
  private rowsBetween(after: string, before: string, limit: number): Promise<OldRow[]> {
    const select = selectStatement<[after: string, before: string], OldRow>(`SELECT entity_id, last_seen_day
      FROM customer_identity WHERE entity_id > ? AND entity_id < ? ORDER BY entity_id LIMIT ${limit}`);
    return this.database.select(select, [after, before]);
  }

  /** Returns the browsers without a customer that must be retained, in the order of their ids. */
  private async *withoutRetained(browsers: string[], day: number, size: number): AsyncGenerator<number, string[]> {
    const retainedBrowsers = new Set<string>();
    const limit = Math.min(size, MAX_LIST_VALUES);
    let rest = browsers;
    let last: Customer | undefined;
    while (rest.length > 0) {
      const customers = await this.customersOf(rest, last, limit);
      for (const { browser_id } of await this.retainedOf(customers, day)) retainedBrowsers.add(browser_id);
      last = customers.length < limit ? undefined : customers.at(-1);
      rest = last ? rest.slice(rest.indexOf(last.browser_id)) : [];
      if (last && retainedBrowsers.has(last.browser_id)) {
        last = undefined;
        rest = rest.slice(1);
      }
      yield 0;
    }
    return browsers.filter((browser) => !retainedBrowsers.has(browser));
  }

  /**
   * A customer with a raised generation is retained: without its row, its ended tokens would be valid again. A customer
   * that got a token in another way than by its browser is retained too.
   */
  private async retainedOf(customers: Customer[], day: number): Promise<Customer[]> {
    if (customers.length === 0) return [];
    const retainedIds = new Set(await this.participants.mustRetain(customers.map(({ entity_id }) => entity_id)));
    return customers.filter(
      ({ entity_id, generation, last_token_day }) =>
        (generation ?? 0) > 0 || (last_token_day ?? 0) >= day || retainedIds.has(entity_id),
    );
  }

  /**
   * The next customers of these browsers in the order of the index. `last` is a customer of the first browser. Erased
   * customers are omitted, because participants have deleted their data. Without other browsers, their list has the id
   * of no browser.
   */
  private customersOf(
    [first = '', ...others]: string[],
    last: Customer | undefined,
    limit: number,
  ): Promise<Customer[]> {
    const { organization_id = '', group_id = '' } = last ?? {};
    const list = valueList(others.length > 0 ? others : ['']);
    const select = selectStatement<
      SqlValue[],
      Customer
    >(`SELECT entity_id, browser_id, organization_id, group_id, generation, last_token_day
      FROM customer_identity
      WHERE (browser_id = ? AND organization_id = ? AND group_id > ?) OR (browser_id = ? AND organization_id > ?)
        OR (browser_id IN (${placeholdersFor(list)}) AND organization_id IS NOT NULL)
      ORDER BY browser_id, organization_id, group_id LIMIT ${limit}`);
    return this.database.select(select, [first, organization_id, group_id, first, organization_id, ...list]);
  }

  /**
   * Removes the secrets of idle browsers. A browser that returns now either prevents the UPDATE or is no longer
   * recognised.
   *
   * @returns the browsers that now have no secret
   */
  private async removeSecrets(idle: string[], day: number): Promise<string[]> {
    if (idle.length === 0) return [];
    const list = valueList(idle);
    const condition = `entity_id IN (${placeholdersFor(list)})`;
    const remove = writeStatement(
      `UPDATE customer_identity SET secret_hash = ? WHERE ${condition} AND last_seen_day < ?`,
    );
    await this.database.execute(remove, [NO_SECRET, ...list, day]);
    const withoutSecret = selectStatement<string[], EntityRow<CustomerIdentity, 'entity_id'>>(
      `SELECT entity_id FROM customer_identity WHERE ${condition} AND secret_hash = ?`,
    );
    const rows = await this.database.select(withoutSecret, [...list, NO_SECRET]);
    return rows.map(({ entity_id }) => entity_id);
  }
}
