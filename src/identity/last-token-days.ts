import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { writeStatement } from '../platform/database/statement.js';

/**
 * The last day that is noted for a token of a customer, for SELECTs of `customer`. `null` for a customer that no browser
 * created, which is never purged and needs no note. 0 for an erased customer, so that the note fails.
 */
export const TOKEN_DAY = `CASE WHEN erased_at IS NOT NULL THEN 0
  WHEN creator = 'browser' THEN COALESCE(last_token_day, 0) ELSE NULL END`;

const NOTE = writeStatement<[today: number, entityId: string]>(
  'UPDATE customer SET version = version + 1, last_token_day = ? WHERE entity_id = ? AND erased_at IS NULL',
);

/**
 * Notes the day on which a customer of a browser gets a token without a link, such as a refreshed one. So the purge
 * does not delete the customer (protocol §5.9). Each customer costs at most one write per day.
 */
@Injectable()
export class LastTokenDays {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /**
   * @param tokenDay the value of `TOKEN_DAY`, which the caller has read with the customer
   * @returns false if the customer was erased or purged in the meantime, so that it gets no token
   */
  async note(entityId: string, tokenDay: number | null): Promise<boolean> {
    if (!this.mustNote(tokenDay)) return true;
    return (await this.database.executeIdempotent(NOTE, [dayOf(this.clock.now()), entityId])) > 0;
  }

  /**
   * Notes the day in a transaction that gives a device to the customer. Each call changes the row, so that transactions
   * about one customer follow each other.
   *
   * @returns false if the customer was erased or purged
   */
  async noteIn(manager: EntityManager, entityId: string): Promise<boolean> {
    return (await writeIn(manager, NOTE, [dayOf(this.clock.now()), entityId])) > 0;
  }

  /** Whether `note` writes. @param tokenDay the value of `TOKEN_DAY` */
  mustNote(tokenDay: number | null): boolean {
    return tokenDay !== null && tokenDay < dayOf(this.clock.now());
  }
}
