import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { selectStatement } from '../platform/database/statement.js';
import { unlink } from './links.js';

/**
 * Ends the links that a revocation has ended, before the purge deletes the revocation. Otherwise the links would lead
 * to their customers again (protocol §3.14).
 */
@Injectable()
export class EndedLinks {
  constructor(private readonly database: Database) {}

  /**
   * Ends the links of revocations that have expired. The caller deletes these revocations afterwards, if all steps have
   * run.
   *
   * @param size the number of links that one statement reads
   * @param now the time with which the caller then deletes the expired revocations
   * @returns the number of links that each step ended
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const findEnded = selectStatement<[now: Date], { browser_id: string; entity_id: string }>(
      `SELECT DISTINCT ancestor.browser_id, ancestor.entity_id FROM revocation
        JOIN link_ancestor ancestor ON ancestor.ancestor_id = revocation.value
        WHERE revocation.kind IN ('jti', 'family') AND revocation.expires_at < ? LIMIT ${size}`,
    );
    let found = size;
    while (found === size) {
      const rows = await this.database.select(findEnded, [now]);
      for (const { browser_id, entity_id } of rows)
        await this.database.transaction((manager) => unlink(manager, browser_id, entity_id));
      found = rows.length;
      yield found;
    }
  }
}
