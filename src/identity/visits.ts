import { Injectable } from '@nestjs/common';
import { LastTokenDays } from '../access-token/last-token-days.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { dayOf } from '../platform/day.js';
import type { IdentityScope } from './identity-scope.js';
import {
  NOTE_BROWSER,
  NOTE_BROWSER_AND_SCOPE,
  NOTE_LINK,
  NOTE_SCOPE,
  type RecognisedRow,
} from './recognise-statements.js';

/** Notes the day on which a browser was seen (protocol §5.9). */
@Injectable()
export class Visits {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly lastTokenDays: LastTokenDays,
  ) {}

  /**
   * The first call of a day in a scope notes the day, so that neither the browser nor its customer is idle.
   *
   * @returns false if the browser has just lost its secret, or if its customer was just erased or purged
   */
  async note(row: RecognisedRow, scope: IdentityScope): Promise<boolean> {
    const { browser_id, last_seen_day, entity_id, linked_id, scope_seen_day, has_ended } = row;
    const secretHash = row.secret_hash as string;
    const today = dayOf(this.clock.now());
    const mustNoteScope = entity_id !== null && has_ended === 0 && (scope_seen_day ?? 0) < today;
    if (mustNoteScope && linked_id === null && entity_id === browser_id)
      return this.wrote(this.database.execute(NOTE_BROWSER_AND_SCOPE, [today, today, browser_id, secretHash]));
    if (last_seen_day < today) {
      const isKnown = await this.wrote(this.database.execute(NOTE_BROWSER, [today, browser_id, secretHash]));
      if (!isKnown) return false;
    }
    if (!mustNoteScope) return true;
    if (linked_id === null) return this.wrote(this.database.execute(NOTE_SCOPE, [today, entity_id]));
    return this.noteLink(browser_id, entity_id, scope, today);
  }

  /** The day is also noted in the customer's row, because a link may be deleted before the customer. */
  private async noteLink(
    browserId: string,
    entityId: string,
    { organizationId, groupId }: IdentityScope,
    today: number,
  ): Promise<boolean> {
    if (!(await this.lastTokenDays.note(entityId, 0))) return false;
    await this.database.execute(NOTE_LINK, [today, browserId, organizationId, groupId, entityId]);
    return true;
  }

  private async wrote(changed: Promise<number>): Promise<boolean> {
    return (await changed) > 0;
  }
}
