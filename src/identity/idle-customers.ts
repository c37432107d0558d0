import { Injectable } from '@nestjs/common';
import { type EntityManager, IsNull, Not } from 'typeorm';
import { RecordedValues } from '../access-token/recorded-values.js';
import { Clock, DAY_MS, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { selectIn, writeIn } from '../platform/database/in-transaction.js';
import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import { type SelectStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { uuidv7 } from '../platform/uuid.js';
import { Organization } from '../registry/organization.entity.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerErasure, ERASED_COLUMNS } from './customer-erasure.js';
import { DEFAULT_IDLE_DAYS } from './link-lifetime.js';
import { raiseVersions, unlinkIdle } from './links.js';

/** Covers requests under way at midnight, and clocks that differ. */
const CLOCK_MARGIN_MS = 300_000;
/** A transfer token is created by a token, which lives at most a day, and lives at most another day. */
const MAX_TRANSFER_MS = 2 * DAY_MS;
/** The number of customers of one transaction, and of the deletions in one step, within which the purge holds its lease. */
const MAX_CUSTOMERS_PER_STEP = 100;

/** A customer, and the last day on which it may have got a token. */
interface CustomerDay {
  entity_id: string;
  organization_id: string;
  /** 1 if the customer was erased, and no token of it is valid. */
  is_deletable: number;
  /** `null` for a customer that no browser created, and for an erased one. */
  day: number | null;
}

type FindDays = SelectStatement<SqlValue[], CustomerDay>;

const DAY_COLUMNS = `own.entity_id, own.organization_id,
  ${sqlFlag('own.erased_at < ? AND own.generation = 0')} AS is_deletable,
  CASE WHEN own.creator = 'browser' AND own.erased_at IS NULL THEN COALESCE(own.last_token_day, 0) END AS day`;

/** The next customers in the order of their creation. */
const findNext = (limit: number): FindDays =>
  selectStatement(`SELECT ${DAY_COLUMNS} FROM customer own
    WHERE own.entity_id > ? AND own.entity_id < ? ORDER BY own.entity_id LIMIT ${limit}`);

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
    private readonly clock: Clock,
    private readonly participants: CustomerDataParticipants,
    private readonly recorded: RecordedValues,
    private readonly erasure: CustomerErasure,
  ) {}

  /**
   * Purges in steps. The caller may stop after any step. Then the next purge repeats the pass, and finishes the
   * customers whose data is not deleted.
   *
   * @param size the number of rows that one statement reads
   * @returns the number of customers that each step purged
   */
  async *deleteInSteps(size: number): AsyncGenerator<number, void> {
    yield* this.erasure.finishInSteps(size);
    const now = this.clock.now() - CLOCK_MARGIN_MS;
    const today = dayOf(now);
    if ((await this.recorded.purgeDay('idle_customers_purged_day')) === today) return;
    const idleDays = await this.idleDays();
    const firstDayOf = (organizationId: string) => today - (idleDays.get(organizationId) ?? DEFAULT_IDLE_DAYS);
    const before = uuidv7(now - Math.min(DEFAULT_IDLE_DAYS, ...idleDays.values()) * DAY_MS);
    const transferable = new Date(now - MAX_TRANSFER_MS);
    let after: string | undefined = '';
    while (after !== undefined) {
      const rows: CustomerDay[] = await this.database.select(findNext(size), [transferable, after, before]);
      yield 0;
      const deletable = rows.filter(({ is_deletable }) => is_deletable !== 0);
      for (const portion of portionsOf(deletable, MAX_CUSTOMERS_PER_STEP)) yield await this.delete(portion);
      const idle = rows.filter(({ organization_id, day }) => day !== null && day < firstDayOf(organization_id));
      for (const portion of portionsOf(idle, MAX_CUSTOMERS_PER_STEP)) yield await this.purge(portion, firstDayOf);
      after = rows.length < size ? undefined : rows.at(-1)?.entity_id;
    }
    await this.recorded.recordPurgeDay('idle_customers_purged_day', today);
  }

  /** The organizations in which a customer is idle earlier than by default. One that was deleted has the default. */
  private async idleDays(): Promise<Map<string, number>> {
    const where = { idleDays: Not(IsNull()) };
    const found = await this.database.read(Organization, { select: { id: true, idleDays: true }, where });
    return new Map(found.map(({ id, idleDays }) => [id, idleDays as number]));
  }

  /** The row of an erased customer is needed only for its generation, and while its transfer tokens live. */
  private delete(rows: CustomerDay[]): Promise<number> {
    const list = valueList(rows.map(({ entity_id }) => entity_id));
    const condition = `entity_id IN (${placeholdersFor(list)}) AND erased_at IS NOT NULL AND generation = 0`;
    return this.database.execute(writeStatement<string[]>(`DELETE FROM customer WHERE ${condition}`), list);
  }

  private async purge(rows: CustomerDay[], firstDayOf: (organizationId: string) => number): Promise<number> {
    const retained = new Set(await this.participants.mustRetain(rows.map(({ entity_id }) => entity_id)));
    const candidates = rows.filter(({ entity_id }) => !retained.has(entity_id));
    if (candidates.length === 0) return 0;
    const purged = await this.database.transaction((manager) => this.purgeIn(manager, candidates, firstDayOf));
    if (purged.length > 0) await this.erasure.finishInPurge(purged);
    return purged.length;
  }

  /**
   * A request for a token of one of these customers either has changed the customer or a link before, and the customer
   * is retained, or finds neither afterwards.
   */
  private async purgeIn(
    manager: EntityManager,
    candidates: CustomerDay[],
    firstDayOf: (organizationId: string) => number,
  ): Promise<string[]> {
    const organizations = new Map(candidates.map((row) => [row.entity_id, row.organization_id]));
    await raiseVersions(manager, 'customer', [...organizations.keys()]);
    const purged: string[] = [];
    for (const organizationId of new Set(organizations.values())) {
      const ids = [...organizations].filter(([, id]) => id === organizationId).map(([entityId]) => entityId);
      purged.push(...(await this.purgeOfOrganization(manager, ids, firstDayOf(organizationId))));
    }
    return purged;
  }

  private async purgeOfOrganization(manager: EntityManager, ids: string[], firstDay: number): Promise<string[]> {
    const list = valueList(ids);
    const condition = `entity_id IN (${placeholdersFor(list)})`;
    await unlinkIdle(manager, 'entityId', ids, firstDay);
    const findIdle = selectStatement<SqlValue[], { entity_id: string }>(
      `SELECT entity_id FROM customer WHERE ${condition} AND erased_at IS NULL AND COALESCE(last_token_day, 0) < ?
        AND NOT EXISTS (SELECT 1 FROM browser_customer link
          WHERE link.entity_id = customer.entity_id AND link.seen_day >= ?)`,
    );
    const found = await selectIn(manager, findIdle, [...list, firstDay, firstDay]);
    const idle = found.map(({ entity_id }) => entity_id);
    if (idle.length === 0) return [];
    const idleList = valueList(idle);
    const erase = writeStatement<SqlValue[]>(
      `UPDATE customer SET erased_at = ?, ${ERASED_COLUMNS} WHERE entity_id IN (${placeholdersFor(idleList)})`,
    );
    await writeIn(manager, erase, [new Date(this.clock.now()), ...idleList]);
    await this.erasure.noteUnfinished(manager, idle);
    return idle;
  }
}
