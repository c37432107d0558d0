import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { selectStatement, writeStatement } from '../platform/database/statement.js';
import { DELETE_ANCESTORS } from './link-statements.js';

const DELETE_LINKS_OF_REDEMPTION = writeStatement<[redemption: string]>(
  'DELETE FROM browser_link WHERE redemption = ?',
);

/**
 * Deletes the links that a revocation has ended, before the purge deletes the revocation. Otherwise the links would
 * lead to their customers again (protocol §3.14).
 */
@Injectable()
export class EndedLinks {
  constructor(private readonly database: Database) {}

  /**
   * Deletes the links of revocations that have expired. The caller deletes these revocations afterwards, if all steps
   * have run.
   *
   * @param size the number of redemptions that one statement reads
   * @param now the time with which the caller then deletes the expired revocations
   * @returns the number of links that each step deleted
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const findEnded = selectStatement<[now: Date], { redemption: string }>(
      `SELECT DISTINCT ancestor.redemption FROM revocation
        JOIN link_ancestor ancestor ON ancestor.ancestor_id = revocation.value
        WHERE revocation.kind IN ('jti', 'family') AND revocation.expires_at < ? LIMIT ${size}`,
    );
    let found = size;
    while (found === size) {
      const rows = await this.database.select(findEnded, [now]);
      for (const { redemption } of rows) {
        yield await this.database.execute(DELETE_LINKS_OF_REDEMPTION, [redemption]);
        await this.database.execute(DELETE_ANCESTORS, [redemption]);
      }
      found = rows.length;
    }
  }
}
