import { Injectable } from '@nestjs/common';
import { MigrationState } from '../access-token/migration-state.js';
import { RecordedValues } from '../access-token/recorded-values.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { valueList } from '../platform/database/value-list.js';
import { DAY_MS, dayOf } from '../platform/day.js';
import { uuidv7 } from '../platform/uuid.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import {
  type CustomerDay,
  deleteRows,
  FIND_IDLE_DAYS,
  finishRows,
  purgeRows,
  selectNext,
  selectPurged,
} from './idle-customer-statements.js';
import { DEFAULT_IDLE_DAYS } from './idle-rule.js';

/** Covers requests under way at midnight, and clocks that differ. */
const CLOCK_MARGIN_MS = 300_000;
/** A transfer token is created by a token, which lives at most a day, and lives at most another day. */
const MAX_TRANSFER_DAYS = 2;
/** The number of customers whose data participants delete in one step, within which the purge holds its lease. */
const MAX_CUSTOMERS_PER_STEP = 100;

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
    private readonly migration: MigrationState,
    private readonly recorded: RecordedValues,
  ) {}

  /**
   * Purges in steps. The caller may stop after any step. Then the next purge repeats the pass, and finishes the
   * customers whose participants were not called.
   *
   * @param size the number of rows that one statement reads
   * @returns the number of rows that each step deleted
   */
  async *deleteInSteps(size: number): AsyncGenerator<number, void> {
    // Processes of release 1 note no days of customers.
    if (!(await this.migration.readIsComplete())) return;
    const now = this.clock.now() - CLOCK_MARGIN_MS;
    const today = dayOf(now);
    if ((await this.recorded.purgeDay()) === today) return;
    const { completeDay } = this.migration;
    const idleDays = await this.idleDays();
    const limitOf = (organizationId: string) => today - (idleDays.get(organizationId) ?? DEFAULT_IDLE_DAYS);
    const before = uuidv7(now - Math.min(DEFAULT_IDLE_DAYS, ...idleDays.values()) * DAY_MS);
    let after: string | undefined = '';
    while (after !== undefined) {
      const rows: CustomerDay[] = await this.database.select(selectNext(size), [after, before]);
      yield 0;
      const mayBeIdle = ({ organization_id, scope_seen_day, day }: CustomerDay) => {
        if (organization_id === null) return scope_seen_day !== null;
        return day !== null && Math.max(day, completeDay) < limitOf(organization_id);
      };
      for (const portion of portionsOf(rows.filter(mayBeIdle))) yield await this.purge(portion, today, limitOf);
      after = rows.length < size ? undefined : rows.at(-1)?.entity_id;
    }
    await this.recorded.recordDay('idle_customers_purged_day', today);
  }

  /** An organization that was deleted has the default. */
  private async idleDays(): Promise<Map<string, number>> {
    const rows = await this.database.select(FIND_IDLE_DAYS, []);
    return new Map(rows.map(({ id, idle_days }) => [id, idle_days]));
  }

  /** @returns the number of deleted rows */
  private async purge(
    rows: CustomerDay[],
    today: number,
    limitOf: (organizationId: string) => number,
  ): Promise<number> {
    const ids = rows.map(({ entity_id }) => entity_id);
    const retained = new Set(await this.participants.mustRetain(ids));
    const idle = rows.filter(({ entity_id }) => !retained.has(entity_id));
    for (const [organizationId, ofOrganization] of byOrganization(idle)) {
      const limit = limitOf(organizationId);
      const list = valueList(ofOrganization);
      await this.database.execute(purgeRows(list), [today, ...list, organizationId, limit, limit, limit]);
    }
    const all = valueList(ids);
    const purged = (await this.database.select(selectPurged(all), all)).map(({ entity_id }) => entity_id);
    if (purged.length === 0) return 0;
    for (const id of purged) await this.participants.onErase(id);
    const list = valueList(purged);
    await this.database.execute(finishRows(list), list);
    return this.database.execute(deleteRows(list), [...list, today - MAX_TRANSFER_DAYS]);
  }
}

function* portionsOf(rows: CustomerDay[]): Generator<CustomerDay[]> {
  for (let at = 0; at < rows.length; at += MAX_CUSTOMERS_PER_STEP) yield rows.slice(at, at + MAX_CUSTOMERS_PER_STEP);
}

function byOrganization(rows: CustomerDay[]): Map<string, string[]> {
  const ids = new Map<string, string[]>();
  for (const { entity_id, organization_id } of rows)
    if (organization_id !== null) ids.set(organization_id, [...(ids.get(organization_id) ?? []), entity_id]);
  return ids;
}
