import { Injectable } from '@nestjs/common';
import { Customers, type CustomersToPurge } from '../customer/customers.js';
import { dayOf } from '../platform/clock.js';
import { portionsOf } from '../platform/database/value-list.js';
import { RecordedValues } from '../session/recorded-values.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerErasure } from './customer-erasure.js';

/** The number of customers of one step, within which the purge holds its lease. */
const MAX_CUSTOMERS_PER_STEP = 100;
/** Covers requests under way at midnight, and clocks that differ. */
const CLOCK_MARGIN_MS = 300_000;

/**
 * Purges the customers that a browser created and that have no session, `idle_days` after their last use (protocol §5.9).
 * Customers that agents created, and those of users, remain. The same pass finishes erasures that were interrupted.
 *
 * Days decide, so one pass per day is enough. It reads the table by its primary key and needs no other index.
 */
@Injectable()
export class IdleCustomers {
  constructor(
    private readonly customers: Customers,
    private readonly participants: CustomerDataParticipants,
    private readonly recorded: RecordedValues,
    private readonly erasure: CustomerErasure,
  ) {}

  /**
   * Purges in steps. The caller may stop after any step. Then, and after a failure, the next purge repeats the pass.
   *
   * @param size the number of rows that one statement reads
   * @param now the time of the purge
   * @returns the number of customers that each step purged
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const today = dayOf(now.getTime() - CLOCK_MARGIN_MS);
    if ((await this.recorded.purgeDay('idle_customers_purged_day')) === today) return;
    let after: string | undefined = '';
    let failed = 0;
    while (after !== undefined) {
      const page: CustomersToPurge = await this.customers.findToPurge(after, size, today);
      yield 0;
      for (const portion of portionsOf(page.erased, MAX_CUSTOMERS_PER_STEP)) {
        failed += await this.erasure.finishInPurge(portion);
        yield 0;
      }
      for (const portion of portionsOf(page.idle, MAX_CUSTOMERS_PER_STEP)) {
        const marked = await this.mark(portion, now, today);
        failed += await this.erasure.finishInPurge(marked);
        yield marked.length;
      }
      after = page.next;
    }
    if (failed === 0) await this.recorded.recordPurgeDay('idle_customers_purged_day', today);
  }

  /**
   * If a request for a token of one of these customers came first, it has noted the day, and the customer remains. If it
   * comes later, it finds no customer.
   */
  private async mark(ids: string[], now: Date, today: number): Promise<string[]> {
    const retained = new Set(await this.participants.mustRetain(ids));
    const candidates = ids.filter((id) => !retained.has(id));
    return candidates.length === 0 ? [] : this.customers.markIdle(candidates, now, today);
  }
}
