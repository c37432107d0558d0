import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeStatement } from '../platform/database/statement.js';
import { dayOf } from '../platform/day.js';

/**
 * The last day that is noted for a token of a customer, for SELECTs of `customer_identity`. `null` for a customer that
 * an agent created, which is never purged and needs no note. 0 for an erased customer, so that the note fails.
 */
export const TOKEN_DAY = `CASE WHEN organization_id IS NULL THEN 0
  WHEN browser_id IS NULL THEN NULL
  WHEN COALESCE(last_token_day, 0) > COALESCE(scope_seen_day, 0) THEN last_token_day
  ELSE COALESCE(scope_seen_day, 0) END`;

const NOTE = writeStatement<[today: number, entityId: string]>(
  'UPDATE customer_identity SET last_token_day = ? WHERE entity_id = ? AND organization_id IS NOT NULL',
);

/**
 * Notes the day on which a customer of a browser gets a token in another way than by its own browser. So the purge does
 * not delete the customer (protocol §5.9). Each customer costs at most one write per day.
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

  /** Whether `note` writes. @param tokenDay the value of `TOKEN_DAY` */
  mustNote(tokenDay: number | null): boolean {
    return tokenDay !== null && tokenDay < dayOf(this.clock.now());
  }
}
