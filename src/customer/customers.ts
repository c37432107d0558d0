import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import {
  type ColumnValues,
  type EntityRow,
  insertIgnoreStatement,
  insertStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { sha256 } from '../platform/secret.js';
import { idleDaysOf } from '../registry/organization.entity.js';
import { CustomerEntity } from './customer.entity.js';
import type { CustomerCreator, CustomerSpace } from './customer.js';
import { CustomerKey } from './customer-key.entity.js';

const COLUMNS = [
  'entity_id',
  'organization_id',
  'group_id',
  'creator',
  'generation',
  'has_user',
  'linked_to',
  'seen_day',
  'erased_at',
  'created_at',
] as const;

export type CustomerRow = EntityRow<CustomerEntity, (typeof COLUMNS)[number]>;

const FIND = selectStatement<[entityId: string], CustomerRow>({
  columns: [...COLUMNS],
  from: 'customer WHERE entity_id = ?',
  batch: true,
});

const FIND_BY_KEY = selectStatement<[hash: string], CustomerRow>({
  columns: COLUMNS.map((column) => `customer.${column}`),
  from: 'customer_key JOIN customer ON customer.entity_id = customer_key.entity_id WHERE customer_key.hash = ?',
  batch: true,
});

const INSERT_COLUMNS = [
  'entity_id',
  'organization_id',
  'group_id',
  'creator',
  'generation',
  'version',
  'has_user',
  'seen_day',
  'created_at',
] as const;

const NEW_ROW = { into: CustomerEntity, columns: INSERT_COLUMNS };
/** For an INSERT together with rows of other tables too. */
export const NEW_CUSTOMER = insertStatement({ ...NEW_ROW, batch: true });
const INSERT_IF_ABSENT = insertIgnoreStatement(NEW_ROW);
const INSERT_KEY = insertIgnoreStatement({ into: CustomerKey, columns: ['hash', 'entity_id'] });

/** Never an earlier day, so that a process whose clock is behind does not shorten the life of a customer. */
const LATEST_DAY = 'CASE WHEN seen_day < ? THEN ? ELSE seen_day END';
/** Matches no row if the customer is gone, being erased or linked, or its tokens of this generation have ended. */
const WRITE = writeStatement<[today: number, today: number, entityId: string, generation: number]>(
  `UPDATE customer SET version = version + 1, seen_day = ${LATEST_DAY}
    WHERE entity_id = ? AND generation = ? AND erased_at IS NULL AND linked_to IS NULL`,
);
const WRITE_ANY_GENERATION = writeStatement<[today: number, today: number, entityId: string]>(
  `UPDATE customer SET version = version + 1, seen_day = ${LATEST_DAY}
    WHERE entity_id = ? AND erased_at IS NULL AND linked_to IS NULL`,
);
/** At least the time, so that clocks of processes may differ. */
const RAISED = 'CASE WHEN generation < ? THEN ? ELSE generation + 1 END';
const RAISE = writeStatement<[now: number, now: number, today: number, today: number, entityId: string]>(
  `UPDATE customer SET version = version + 1, generation = ${RAISED}, seen_day = ${LATEST_DAY}
    WHERE entity_id = ? AND erased_at IS NULL`,
);
/** At most once: a visitor's customer that is linked, or is a user's, does not match. */
const LINK = writeStatement<[now: number, now: number, userId: string, visitorId: string]>(
  `UPDATE customer SET version = version + 1, generation = ${RAISED}, linked_to = ?
    WHERE entity_id = ? AND linked_to IS NULL AND has_user = 0 AND erased_at IS NULL`,
);
const ERASE = writeStatement<[now: number, now: number, erasedAt: Date, entityId: string]>(
  `UPDATE customer SET version = version + 1, generation = ${RAISED}, erased_at = ?
    WHERE entity_id = ? AND erased_at IS NULL`,
);
const NOTE_DAY = writeStatement<[today: number, today: number, entityId: string]>(
  `UPDATE customer SET seen_day = ${LATEST_DAY} WHERE entity_id = ? AND erased_at IS NULL AND linked_to IS NULL`,
);

const DEFAULT_IDLE_DAYS = 731;
/** A visitor's customer that was not used for `idle_days`. */
const IS_IDLE = `customer.creator = 'browser' AND customer.has_user = 0 AND customer.erased_at IS NULL
  AND customer.seen_day + COALESCE(${idleDaysOf('customer.organization_id')}, ${DEFAULT_IDLE_DAYS}) < ?
  AND NOT EXISTS (SELECT 1 FROM session WHERE session.customer_id = customer.entity_id)`;

const FIND_EXPORTED = selectStatement<[entityId: string], Record<string, SqlValue>>(
  `SELECT entity_id, organization_id, group_id, creator, generation, has_user, linked_to, seen_day, created_at
    FROM customer WHERE entity_id = ? AND erased_at IS NULL`,
);

/** A page of customers, as the purge reads them. */
export interface CustomersToPurge {
  idle: string[];
  erased: string[];
  /** Where the next page begins; `undefined` after the last one. */
  next: string | undefined;
}

/** The values of a new customer in the order of the columns. */
export function newCustomerRow(
  entityId: string,
  { organizationId, groupId }: CustomerSpace,
  creator: CustomerCreator,
  now: number,
  hasUser = false,
): ColumnValues<CustomerEntity, typeof INSERT_COLUMNS> {
  return [entityId, organizationId, groupId, creator, now, 0, hasUser, dayOf(now), new Date(now)];
}

/** The key of a user in the table of keys. */
export function userKeyOf(organizationId: string, userId: string): string {
  return sha256(JSON.stringify([organizationId, userId]));
}

/**
 * The rows of customers, and the keys that lead to them. A transaction that begins or ends sessions of a customer writes
 * its row first (`writeIn`), and then reads: so two such transactions follow each other on one server, and one of them is
 * repeated on a cluster (decision 0038). Several customers are written in the order of their ids.
 */
@Injectable()
export class Customers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** The row of a customer, also of one that is being erased. */
  async find(entityId: string): Promise<CustomerRow | undefined> {
    const [row] = await this.database.select(FIND, [entityId]);
    // a database ignores spaces at the end of a text
    return row?.entity_id === entityId ? row : undefined;
  }

  async findIn(manager: EntityManager, entityId: string): Promise<CustomerRow | undefined> {
    return (await selectIn(manager, FIND, [entityId]))[0];
  }

  async findByKey(key: string): Promise<CustomerRow | undefined> {
    return (await this.database.select(FIND_BY_KEY, [key]))[0];
  }

  async insert(entityId: string, space: CustomerSpace, creator: CustomerCreator): Promise<number> {
    const now = this.clock.now();
    await this.database.insert(NEW_CUSTOMER, newCustomerRow(entityId, space, creator, now));
    return now;
  }

  async insertIn(
    manager: EntityManager,
    entityId: string,
    space: CustomerSpace,
    creator: CustomerCreator,
    hasUser = false,
  ): Promise<number> {
    const now = this.clock.now();
    await writeIn(manager, NEW_CUSTOMER, newCustomerRow(entityId, space, creator, now, hasUser));
    return now;
  }

  /** Inserts a customer unless its id exists. */
  async insertIfAbsent(
    entityId: string,
    space: CustomerSpace,
    creator: CustomerCreator,
  ): Promise<{ isInserted: boolean; generation: number }> {
    const now = this.clock.now();
    const inserted = await this.database.execute(INSERT_IF_ABSENT, newCustomerRow(entityId, space, creator, now));
    return { isInserted: inserted > 0, generation: now };
  }

  /** @returns false if the key leads to another customer already */
  async insertKeyIn(manager: EntityManager, key: string, entityId: string): Promise<boolean> {
    return (await writeIn(manager, INSERT_KEY, [key, entityId])) > 0;
  }

  /**
   * Runs a transaction about the sessions of a customer.
   *
   * @param generation of the token that it acts for; if omitted, any
   * @returns `undefined` if the customer is gone, was linked, or has another generation
   */
  change<Result>(
    { entityId, generation }: { entityId: string; generation?: number },
    work: (manager: EntityManager) => Promise<Result>,
  ): Promise<Result | undefined> {
    return this.database.transaction(async (manager) =>
      (await this.writeIn(manager, entityId, generation)) ? work(manager) : undefined,
    );
  }

  /** @returns false if the customer is gone, was linked, or has another generation */
  async writeIn(manager: EntityManager, entityId: string, generation?: number): Promise<boolean> {
    const today = this.today();
    if (generation === undefined) return (await writeIn(manager, WRITE_ANY_GENERATION, [today, today, entityId])) > 0;
    return (await writeIn(manager, WRITE, [today, today, entityId, generation])) > 0;
  }

  /**
   * Raises the generation in a transaction, which ends all tokens of the customer.
   *
   * @returns the new generation; `undefined` if the customer is gone
   */
  async raiseGenerationIn(manager: EntityManager, entityId: string): Promise<number | undefined> {
    const now = this.clock.now();
    if ((await writeIn(manager, RAISE, [now, now, dayOf(now), dayOf(now), entityId])) === 0) return undefined;
    return this.generationIn(manager, entityId);
  }

  /** Links a visitor's customer to a user's. @returns its new generation; `undefined` if it cannot be linked */
  async linkIn(manager: EntityManager, visitorId: string, userId: string): Promise<number | undefined> {
    const now = this.clock.now();
    if ((await writeIn(manager, LINK, [now, now, userId, visitorId])) === 0) return undefined;
    return this.generationIn(manager, visitorId);
  }

  /** Makes a visitor's customer that of a user. @returns false if it is one already, or is linked */
  async becomeUserIn(manager: EntityManager, entityId: string): Promise<boolean> {
    const visitor = { entityId, linkedTo: IsNull(), hasUser: false, erasedAt: IsNull() };
    return (await manager.update(CustomerEntity, visitor, { hasUser: true })).affected === 1;
  }

  /** Marks a customer as being erased. @returns the new generation; `undefined` if it is gone or marked already */
  async eraseIn(manager: EntityManager, entityId: string): Promise<number | undefined> {
    const now = this.clock.now();
    if ((await writeIn(manager, ERASE, [now, now, new Date(now), entityId])) === 0) return undefined;
    return this.generationIn(manager, entityId);
  }

  /** Deletes the row of a customer that is being erased, with its keys. */
  async deleteErased(entityId: string): Promise<void> {
    const { manager } = this.database;
    // the customers that were linked to it stay linked, and do not name it any more
    await manager.update(CustomerEntity, { linkedTo: entityId }, { linkedTo: '' });
    // no foreign key deletes them, because a MySQL group with several primaries refuses one with CASCADE
    await manager.delete(CustomerKey, { entityId });
    await manager.delete(CustomerEntity, { entityId, erasedAt: Not(IsNull()) });
  }

  /**
   * Notes the day on which a customer gets a token without a session, so that the purge does not delete it (protocol
   * §5.9). This costs at most one write per customer and day.
   *
   * @returns false if the customer is gone or was linked
   */
  async noteDay({ entity_id, creator, seen_day }: CustomerRow): Promise<boolean> {
    const today = this.today();
    // only customers of browsers are purged
    if (creator !== 'browser' || seen_day >= today) return true;
    return (await this.database.execute(NOTE_DAY, [today, today, entity_id])) > 0;
  }

  /** The customers that were linked to one. @param limit the most ids that are returned */
  async linkedTo(entityId: string, limit: number): Promise<string[]> {
    const rows = await this.database.manager.find(CustomerEntity, {
      select: { entityId: true },
      where: { linkedTo: entityId },
      order: { entityId: 'ASC' },
      take: limit,
    });
    return rows.map((row) => row.entityId);
  }

  /**
   * Reads the next customers in the order of their ids.
   *
   * @param after the `next` of the page before; the empty string for the first one
   * @param limit the number of customers that are read
   * @returns those of them that are idle, those whose erasure was interrupted, and where the next page begins
   */
  async findToPurge(after: string, limit: number, today: number): Promise<CustomersToPurge> {
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
    const list = valueList(entityIds);
    const ids = placeholdersFor(list);
    const mark = writeStatement<SqlValue[]>(
      `UPDATE customer SET version = version + 1, erased_at = ? WHERE entity_id IN (${ids}) AND ${IS_IDLE}`,
    );
    const rows = await this.database.transaction(async (manager) => {
      await writeIn(manager, mark, [now, ...list, today]);
      const where = { entityId: In(list), erasedAt: Not(IsNull()) };
      return manager.find(CustomerEntity, { select: { entityId: true }, where });
    });
    return rows.map(({ entityId }) => entityId);
  }

  /** The stored row of a customer, for an export. */
  exportRows(entityId: string): Promise<Record<string, SqlValue>[]> {
    return this.database.select(FIND_EXPORTED, [entityId]);
  }

  private async generationIn(manager: EntityManager, entityId: string): Promise<number | undefined> {
    return (await this.findIn(manager, entityId))?.generation;
  }

  private today(): number {
    return dayOf(this.clock.now());
  }
}
