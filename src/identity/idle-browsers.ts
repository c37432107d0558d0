import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import type { SqlValue } from '../platform/database/sql-value.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { uuidv7 } from '../platform/uuid.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import type { CustomerIdentity } from './customer-identity.entity.js';
import { COOKIE_MAX_AGE_SECONDS } from './identity-cookies.js';

type OldRow = EntityRow<CustomerIdentity, 'entity_id' | 'last_seen_day'>;

type Customer = NotNull<EntityRow<CustomerIdentity, 'entity_id' | 'browser_id' | 'organization_id' | 'group_id'>>;

const DAY_MS = 86_400_000;
/** The two years that the cookies live, and one day for clocks and time zones. */
const IDLE_MS = COOKIE_MAX_AGE_SECONDS * 1000 + DAY_MS;
/** How many customers a keeper is asked about at once. */
const MAX_IDS_PER_QUESTION = 500;
/** The secret hash of a browser that is being deleted. No secret has it, so the browser is not recognised any more. */
const NO_SECRET = '';

/**
 * Deletes browsers whose cookies have expired, with their customers. Customers made by agents have no browser and stay.
 *
 * Ids grow with time, so those old enough to be idle are at the beginning of the table: no index is needed to find them.
 */
@Injectable()
export class IdleBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly participants: CustomerDataParticipants,
  ) {}

  /**
   * Deletes in steps. A browser may have any number of customers, so no statement reads or deletes more than `size` rows.
   *
   * The caller may stop after any step. A browser loses its secret first and its own row last, so one that is half deleted is
   * never recognised, and the next purge deletes the rest of it.
   *
   * @returns how many identities each step has deleted
   */
  async *deleteInSteps(size: number): AsyncGenerator<number, void> {
    const idleSince = this.clock.now() - IDLE_MS;
    const day = Math.floor(idleSince / DAY_MS);
    const before = uuidv7(idleSince);
    let after: string | undefined = '';
    while (after !== undefined) {
      const old = await this.rowsBetween(after, before, size);
      yield 0;
      const unseen = old.filter((row) => row.last_seen_day !== null && row.last_seen_day < day);
      const browsers = unseen.map((row) => row.entity_id);
      const idle = yield* this.withoutRetained(browsers, size);
      yield* this.deleteBrowsers(await this.takeSecrets(idle, day), size);
      after = old.length < size ? undefined : old.at(-1)?.entity_id;
    }
  }

  /** The next rows by their key alone. The database would walk on over rows that are not idle. */
  private rowsBetween(after: string, before: string, limit: number): Promise<OldRow[]> {
    const select = selectStatement<[after: string, before: string], OldRow>(`SELECT entity_id, last_seen_day
      FROM customer_identity WHERE entity_id > ? AND entity_id < ? ORDER BY entity_id LIMIT ${limit}`);
    return this.database.select(select, [after, before]);
  }

  /** Those of these browsers, in the order of their ids, that have no customer who must stay. */
  private async *withoutRetained(browsers: string[], size: number): AsyncGenerator<number, string[]> {
    const keeping = new Set<string>();
    const limit = Math.min(size, MAX_IDS_PER_QUESTION);
    let rest = browsers;
    let last: Customer | undefined;
    while (rest.length > 0) {
      const customers = await this.customersOf(rest, last, limit);
      for (const { browser_id } of await this.retainedOf(customers)) keeping.add(browser_id);
      last = customers.length < limit ? undefined : customers.at(-1);
      rest = last ? rest.slice(rest.indexOf(last.browser_id)) : [];
      if (last && keeping.has(last.browser_id)) {
        last = undefined;
        rest = rest.slice(1);
      }
      yield 0;
    }
    return browsers.filter((browser) => !keeping.has(browser));
  }

  private async retainedOf(customers: Customer[]): Promise<Customer[]> {
    if (customers.length === 0) return [];
    const kept = new Set(await this.participants.mustRetain(customers.map(({ entity_id }) => entity_id)));
    return customers.filter(({ entity_id }) => kept.has(entity_id));
  }

  /**
   * The next customers of these browsers in the order of the index, `last` being one of the first browser. Erased ones are left
   * out: keepers have forgotten them.
   */
  private customersOf(
    [first = '', ...others]: string[],
    last: Customer | undefined,
    limit: number,
  ): Promise<Customer[]> {
    const { organization_id = '', group_id = '' } = last ?? {};
    const ofOthers = `OR (browser_id IN (${listOf(others)}) AND organization_id IS NOT NULL)`;
    const select = selectStatement<SqlValue[], Customer>(`SELECT entity_id, browser_id, organization_id, group_id
      FROM customer_identity
      WHERE (browser_id = ? AND organization_id = ? AND group_id > ?) OR (browser_id = ? AND organization_id > ?)
        ${others.length > 0 ? ofOthers : ''}
      ORDER BY browser_id, organization_id, group_id LIMIT ${limit}`);
    return this.database.select(select, [first, organization_id, group_id, first, organization_id, ...others]);
  }

  /**
   * A browser that comes back at this moment is kept: either the UPDATE sees its visit, or its visit sees the UPDATE.
   *
   * @returns the browsers that have no secret now
   */
  private async takeSecrets(idle: string[], day: number): Promise<string[]> {
    if (idle.length === 0) return [];
    const some = `entity_id IN (${listOf(idle)})`;
    const take = writeStatement(`UPDATE customer_identity SET secret_hash = ? WHERE ${some} AND last_seen_day < ?`);
    await this.database.execute(take, [NO_SECRET, ...idle, day]);
    const taken = selectStatement<string[], EntityRow<CustomerIdentity, 'entity_id'>>(
      `SELECT entity_id FROM customer_identity WHERE ${some} AND secret_hash = ?`,
    );
    const rows = await this.database.select(taken, [...idle, NO_SECRET]);
    return rows.map(({ entity_id }) => entity_id);
  }

  private async *deleteBrowsers(browsers: string[], size: number): AsyncGenerator<number, void> {
    if (browsers.length === 0) return;
    const some = listOf(browsers);
    const others = `browser_id IN (${some}) AND entity_id <> browser_id`;
    const order = 'browser_id, organization_id, group_id';
    const deleteOthers = writeStatement<string[]>(({ deleteInOrder }) =>
      deleteInOrder('customer_identity', others, order, size),
    );
    let deleted = size;
    while (deleted === size) {
      deleted = await this.database.execute(deleteOthers, browsers);
      yield deleted;
    }
    const deleteOwn = writeStatement<string[]>(
      `DELETE FROM customer_identity WHERE entity_id IN (${some}) AND secret_hash = ?`,
    );
    yield await this.database.execute(deleteOwn, [...browsers, NO_SECRET]);
  }
}

/** A placeholder for each value. */
function listOf(values: string[]): string {
  return values.map(() => '?').join();
}
