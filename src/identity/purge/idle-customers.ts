import { Injectable } from '@nestjs/common';
import { CustomerPurge, type CustomersToPurge } from '../../customer/customer-purge.js';
import { portionsOf } from '../../platform/database/value-list.js';
import { CustomerDataParticipants } from '../customer-data-participants.js';
import { CustomerErasure } from '../customer-erasure.js';

/** The number of customers of one step, within which the purge holds its lease. */
const MAX_CUSTOMERS_PER_STEP = 100;

/**
 * Purges the customers that a browser created and that have no session, `idle_days` after their last use (protocol §5.9).
 * Customers that agents created, and those of users, remain. The same pass finishes erasures that were interrupted.
 *
 * Days decide, so one pass per day is enough. It reads the table by its primary key and needs no other index.
 */
@Injectable()
export class IdleCustomers {
  constructor(
    private readonly customers: CustomerPurge,
    private readonly participants: CustomerDataParticipants,
    private readonly erasure: CustomerErasure,
  ) {}

  /**
   * Purges in steps. The caller may stop after any step. Then, and after a failure, the next purge repeats the pass.
   *
   * @param size the number of rows that one statement reads
   * @param now the time of the purge
   * @param today the day of the purge, in days since 1970 (UTC)
   * @returns the number of customers that each step purged; at the end, whether every erasure is finished
   */
  async *deleteInSteps(size: number, now: Date, today: number): AsyncGenerator<number, boolean> {
    let after: string | undefined = '';
    let failed = 0;
    while (after !== undefined) {
      const page: CustomersToPurge = await this.customers.find(after, size, today);
      yield 0;
      for (const portion of portionsOf(page.erased, MAX_CUSTOMERS_PER_STEP)) {
        failed += await this.erasure.finishErasures(portion);
        yield 0;
      }
      for (const portion of portionsOf(page.idle, MAX_CUSTOMERS_PER_STEP)) {
        const marked = await this.mark(portion, now, today);
        failed += await this.erasure.finishErasures(marked);
        yield marked.length;
      }
      after = page.next;
    }
    return failed === 0;
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
