import { Injectable } from '@nestjs/common';
import { type EntityManager, type FindOptionsWhere, In, IsNull, Not } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
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
import { CustomerEntity } from './customer.entity.js';
import type { CustomerCreator, CustomerSpace } from './customer.js';
import { CustomerKey } from './customer-key.entity.js';

export const CUSTOMER_COLUMNS = [
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

export type CustomerRow = EntityRow<CustomerEntity, (typeof CUSTOMER_COLUMNS)[number]>;

const FIND = selectStatement<[entityId: string], CustomerRow>({
  columns: [...CUSTOMER_COLUMNS],
  from: 'customer WHERE entity_id = ?',
  batch: true,
});

const FIND_BY_KEY = selectStatement<[hash: string], CustomerRow>({
  columns: CUSTOMER_COLUMNS.map((column) => `customer.${column}`),
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
const INSERT_KEY = insertIgnoreStatement({ into: CustomerKey, columns: ['hash', 'entity_id', 'namespace'] });

/** Never an earlier day, so that a process whose clock is behind does not shorten the life of a customer. */
const LATEST_DAY = 'CASE WHEN seen_day < ? THEN ? ELSE seen_day END';
/** Matches no row if the customer is gone, being erased or linked, or its tokens of this generation have ended. */
const LOCK = writeStatement<[today: number, today: number, entityId: string, generation: number | null]>(
  `UPDATE customer SET version = version + 1, seen_day = ${LATEST_DAY}
    WHERE entity_id = ? AND generation = COALESCE(?, generation) AND erased_at IS NULL AND linked_to IS NULL`,
);
const NOTE_DAY = writeStatement<[today: number, today: number, entityId: string]>(
  `UPDATE customer SET seen_day = ${LATEST_DAY} WHERE entity_id = ? AND erased_at IS NULL AND linked_to IS NULL`,
);

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

/** The namespace of the keys of users. */
export const USER_KEYS = 'user';

/** The key of a user in the table of keys. */
export function userKeyOf(organizationId: string, userId: string): string {
  return sha256(JSON.stringify([organizationId, userId]));
}

/**
 * The rows of customers, and the keys that lead to them. A transaction that begins or ends sessions of a customer locks
 * its row first, by an UPDATE, and then reads: so two such transactions follow each other on one server, and one of
 * them is repeated on a cluster (decision 0038). Several customers are locked in the order of their ids.
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

  /** @returns false if the key leads to another customer already */
  async insertKeyIn(manager: EntityManager, hash: string, entityId: string, namespace: string): Promise<boolean> {
    return (await writeIn(manager, INSERT_KEY, [hash, entityId, namespace])) > 0;
  }

  /**
   * Runs a transaction about the sessions of a customer, which locks its row first.
   *
   * @param generation of the token that it acts for; if omitted, any
   * @returns `undefined` if the customer is gone, was linked, or has another generation
   */
  withLock<Result>(
    { entityId, generation }: { entityId: string; generation?: number },
    work: (manager: EntityManager) => Promise<Result>,
  ): Promise<Result | undefined> {
    return this.database.transaction(async (manager) =>
      (await this.lockIn(manager, entityId, generation)) ? work(manager) : undefined,
    );
  }

  /** @returns false if the customer is gone, was linked, or has another generation */
  async lockIn(manager: EntityManager, entityId: string, generation?: number): Promise<boolean> {
    const today = this.today();
    return (await writeIn(manager, LOCK, [today, today, entityId, generation ?? null])) > 0;
  }

  /**
   * Raises the generation in a transaction, which ends all tokens of the customer.
   *
   * @returns the new generation; `undefined` if the customer is gone
   */
  raiseGenerationIn(manager: EntityManager, entityId: string): Promise<number | undefined> {
    const seenDay = () => 'CASE WHEN seen_day < :today THEN :today ELSE seen_day END';
    return this.raiseIn(manager, { entityId }, { seenDay });
  }

  /**
   * Links a visitor's customer to a user's, at most once.
   *
   * @returns its new generation; `undefined` if it is gone or linked, or is a user's
   */
  linkIn(manager: EntityManager, visitorId: string, userId: string): Promise<number | undefined> {
    return this.raiseIn(manager, { entityId: visitorId, linkedTo: IsNull(), hasUser: false }, { linkedTo: userId });
  }

  /** Makes a visitor's customer that of a user. @returns false if it is one already, or is linked */
  async becomeUserIn(manager: EntityManager, entityId: string): Promise<boolean> {
    const visitor = { entityId, linkedTo: IsNull(), hasUser: false, erasedAt: IsNull() };
    return (await manager.update(CustomerEntity, visitor, { hasUser: true })).affected === 1;
  }

  /** Marks a customer as being erased. @returns the new generation; `undefined` if it is gone or marked already */
  eraseIn(manager: EntityManager, entityId: string): Promise<number | undefined> {
    return this.raiseIn(manager, { entityId }, { erasedAt: new Date(this.clock.now()) });
  }

  /** Marks some customers as being erased, whose tokens have all ended already. */
  async eraseAllIn(manager: EntityManager, entityIds: string[]): Promise<void> {
    const ids = valueList(entityIds);
    const mark = writeStatement<SqlValue[]>(
      `UPDATE customer SET version = version + 1, erased_at = COALESCE(erased_at, ?)
        WHERE entity_id IN (${placeholdersFor(ids)})`,
    );
    await writeIn(manager, mark, [new Date(this.clock.now()), ...ids]);
  }

  /** Deletes the rows of some customers that are being erased, with their keys. */
  async deleteErased(entityIds: string[]): Promise<void> {
    if (entityIds.length === 0) return;
    const { manager } = this.database;
    const ids = In(valueList(entityIds));
    // the customers that were linked to one stay linked, and do not name it any more
    await manager.update(CustomerEntity, { linkedTo: ids }, { linkedTo: '' });
    // no foreign key deletes them, because a MySQL group with several primaries refuses one with CASCADE
    await manager.delete(CustomerKey, { entityId: ids });
    await manager.delete(CustomerEntity, { entityId: ids, erasedAt: Not(IsNull()) });
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

  /** What the keys of a customer are, for an export, without their hashes. */
  exportKeys(entityId: string): Promise<Pick<CustomerKey, 'namespace'>[]> {
    return this.database.manager.find(CustomerKey, { select: { namespace: true }, where: { entityId } });
  }

  /** The new generation is at least the time, so that clocks of processes may differ. */
  private async raiseIn(
    manager: EntityManager,
    customer: FindOptionsWhere<CustomerEntity> & { entityId: string },
    changes: QueryDeepPartialEntity<CustomerEntity>,
  ): Promise<number | undefined> {
    const generation = () => 'CASE WHEN generation < :now THEN :now ELSE generation + 1 END';
    const { affected } = await manager
      .createQueryBuilder()
      .update(CustomerEntity)
      .set({ version: () => 'version + 1', generation, ...changes })
      .where({ ...customer, erasedAt: IsNull() })
      .setParameters({ now: this.clock.now(), today: this.today() })
      .execute();
    return affected === 1 ? (await this.findIn(manager, customer.entityId))?.generation : undefined;
  }

  private today(): number {
    return dayOf(this.clock.now());
  }
}
