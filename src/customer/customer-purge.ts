import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { idleDaysOf, MAX_IDLE_DAYS } from '../registry/organization.entity.js';
import { CustomerEntity } from './customer.entity.js';

/** A visitor's customer that was not used for `idle_days`. */
const IS_IDLE = `customer.creator = 'browser' AND customer.has_user = 0 AND customer.erased_at IS NULL
  AND customer.seen_day + COALESCE(${idleDaysOf('customer.organization_id')}, ${MAX_IDLE_DAYS}) < ?
  AND NOT EXISTS (SELECT 1 FROM session WHERE session.customer_id = customer.entity_id)`;

const LAST_SEEN_DAY = '(SELECT MAX(session.seen_day) FROM session WHERE session.customer_id = customer.entity_id)';

/** A page of customers, as the purge reads them. */
export interface CustomersToPurge {
  idle: string[];
  erased: string[];
  /** Where the next page begins; `undefined` after the last one. */
  next: string | undefined;
}

/** What a purge reads and changes in the rows of customers. */
@Injectable()
export class CustomerPurge {
  constructor(private readonly database: Database) {}

  /**
   * Reads the next customers in the order of their ids.
   *
   * @param after the `next` of the page before; the empty string for the first one
   * @param limit the number of customers that are read
   * @returns those of them that are idle, those whose erasure was interrupted, and where the next page begins
   */
  async find(after: string, limit: number, today: number): Promise<CustomersToPurge> {
    const find = selectStatement<
      [today: number, after: string],
      { entity_id: string; is_idle: number; is_erased: number }
    >(
      `SELECT entity_id, ${sqlFlag(IS_IDLE)} AS is_idle, ${sqlFlag('erased_at IS NOT NULL')} AS is_erased
        FROM customer WHERE entity_id > ?
        ORDER BY entity_id LIMIT ${limit}`,
    );
    const rows = await this.database.select(find, [today, after]);
    const idle = rows.filter(({ is_idle }) => is_idle !== 0).map(({ entity_id }) => entity_id);
    const erased = rows.filter(({ is_erased }) => is_erased !== 0).map(({ entity_id }) => entity_id);
    return { idle, erased, next: rows.length < limit ? undefined : rows.at(-1)?.entity_id };
  }

  /** Marks those of some customers as being erased that are still idle. @returns their ids */
  async markIdle(entityIds: string[], now: Date, today: number): Promise<string[]> {
    const ids = valueList(entityIds);
    const mark = writeStatement<SqlValue[]>(
      `UPDATE customer SET version = version + 1, erased_at = ?
        WHERE entity_id IN (${placeholdersFor(ids)}) AND ${IS_IDLE}`,
    );
    const rows = await this.database.transaction(async (manager) => {
      await writeIn(manager, mark, [now, ...ids, today]);
      const where = { entityId: In(ids), erasedAt: Not(IsNull()) };
      return manager.find(CustomerEntity, { select: { entityId: true }, where });
    });
    return rows.map(({ entityId }) => entityId);
  }

  /** Locks some customers whose sessions are purged, and notes when the sessions were used last. */
  async noteLastUseIn(manager: EntityManager, entityIds: string[]): Promise<void> {
    const ids = valueList(entityIds);
    const note = writeStatement<string[]>(
      `UPDATE customer SET version = version + 1,
          seen_day = CASE WHEN seen_day < ${LAST_SEEN_DAY} THEN ${LAST_SEEN_DAY} ELSE seen_day END
        WHERE entity_id IN (${placeholdersFor(ids)})`,
    );
    await writeIn(manager, note, ids);
  }
}
