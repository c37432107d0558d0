import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { RecordedValues } from '../access-token/recorded-values.js';
import { DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerErasure, ERASED_COLUMNS } from './customer-erasure.js';
import { LinkLifetime, lastDayIfIdle } from './link-lifetime.js';
import { raiseVersions, unlinkIdle } from './links.js';

/** A transfer token is created by a token, which lives at most a day, and lives at most another day. */
const MAX_TRANSFER_MS = 2 * DAY_MS;
/** The number of customers of one transaction, and of the deletions in one step, within which the purge holds its lease. */
const MAX_CUSTOMERS_PER_STEP = 100;

interface FoundCustomer {
  entity_id: string;
  /** 1 if the customer was erased, and no token of it is valid. */
  is_deletable: number;
  /** 1 if the customer was created by a browser and got no token for `idle_days`, except by links. */
  is_idle: number;
}

const IS_IDLE = `customer.creator = 'browser' AND customer.erased_at IS NULL
  AND ${lastDayIfIdle('COALESCE(customer.last_token_day, 0)', 'customer.organization_id')} < ?`;

/** The next customers in the order of their creation. */
const findNext = (limit: number) =>
  selectStatement<[transferable: Date, today: number, after: string, before: string], FoundCustomer>(
    `SELECT entity_id, ${sqlFlag('erased_at < ? AND generation = 0')} AS is_deletable, ${sqlFlag(IS_IDLE)} AS is_idle
      FROM customer WHERE entity_id > ? AND entity_id < ? ORDER BY entity_id LIMIT ${limit}`,
  );

/**
 * Purges the customers that a browser created and that nothing leads to, `idle_days` after their last token (protocol
 * §5.9). Customers that agents created remain.
 *
 * Days decide, so one pass per day is enough. It reads the table by its primary key, up to the youngest customer that
 * may be idle, and needs no other index.
 */
@Injectable()
export class IdleCustomers {
  constructor(
    private readonly database: Database,
    private readonly lifetime: LinkLifetime,
    private readonly participants: CustomerDataParticipants,
    private readonly recorded: RecordedValues,
    private readonly erasure: CustomerErasure,
  ) {}

  /**
   * Purges in steps. The caller may stop after any step. Then the next purge repeats the pass, and finishes the
   * customers whose data is not deleted.
   *
   * @param size the number of rows that one statement reads
   * @param purgeTime the time of the purge
   * @returns the number of customers that each step purged
   */
  async *deleteInSteps(size: number, purgeTime: Date): AsyncGenerator<number, void> {
    yield* this.erasure.finishInSteps(size);
    const { now, today, createdBefore } = await this.lifetime.idlePass(purgeTime);
    if ((await this.recorded.purgeDay('idle_customers_purged_day')) === today) return;
    const transferable = new Date(now - MAX_TRANSFER_MS);
    let after: string | undefined = '';
    while (after !== undefined) {
      const parameters: [Date, number, string, string] = [transferable, today, after, createdBefore];
      const rows: FoundCustomer[] = await this.database.select(findNext(size), parameters);
      yield 0;
      const deletable = rows.filter(({ is_deletable }) => is_deletable !== 0);
      for (const portion of portionsOf(deletable, MAX_CUSTOMERS_PER_STEP)) yield await this.delete(portion);
      const idle = rows.filter(({ is_idle }) => is_idle !== 0);
      for (const portion of portionsOf(idle, MAX_CUSTOMERS_PER_STEP)) yield await this.purge(portion, purgeTime, today);
      after = rows.length < size ? undefined : rows.at(-1)?.entity_id;
    }
    await this.recorded.recordPurgeDay('idle_customers_purged_day', today);
  }

  /** The row of an erased customer is needed only for its generation, and while its transfer tokens live. */
  private delete(rows: FoundCustomer[]): Promise<number> {
    const list = valueList(rows.map(({ entity_id }) => entity_id));
    const condition = `entity_id IN (${placeholdersFor(list)}) AND erased_at IS NOT NULL AND generation = 0`;
    return this.database.execute(writeStatement<string[]>(`DELETE FROM customer WHERE ${condition}`), list);
  }

  private async purge(rows: FoundCustomer[], now: Date, today: number): Promise<number> {
    const ids = rows.map(({ entity_id }) => entity_id);
    const retained = new Set(await this.participants.mustRetain(ids));
    const candidates = ids.filter((id) => !retained.has(id));
    if (candidates.length === 0) return 0;
    const purged = await this.database.transaction((manager) => this.purgeIn(manager, candidates, now, today));
    if (purged.length > 0) await this.erasure.finishInPurge(purged);
    return purged.length;
  }

  /**
   * If a request for a token of one of these customers came first, it has changed the customer or a link, and the
   * customer is retained. If it comes later, it finds neither.
   */
  private async purgeIn(manager: EntityManager, ids: string[], now: Date, today: number): Promise<string[]> {
    await raiseVersions(manager, 'customer', ids);
    await unlinkIdle(manager, 'entity_id', ids, today);
    const list = valueList(ids);
    const findIdle = selectStatement<SqlValue[], { entity_id: string }>(
      `SELECT entity_id FROM customer WHERE entity_id IN (${placeholdersFor(list)}) AND ${IS_IDLE}
        AND NOT EXISTS (SELECT 1 FROM browser_customer link WHERE link.entity_id = customer.entity_id
          AND ${lastDayIfIdle('link.seen_day', 'customer.organization_id')} >= ?)`,
    );
    const idle = (await selectIn(manager, findIdle, [...list, today, today])).map(({ entity_id }) => entity_id);
    if (idle.length === 0) return [];
    const idleList = valueList(idle);
    const erase = writeStatement<SqlValue[]>(
      `UPDATE customer SET erased_at = ?, ${ERASED_COLUMNS} WHERE entity_id IN (${placeholdersFor(idleList)})`,
    );
    await writeIn(manager, erase, [now, ...idleList]);
    await this.erasure.noteUnfinished(manager, idle);
    return idle;
  }
}
