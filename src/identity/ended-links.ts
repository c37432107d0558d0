import { Injectable } from '@nestjs/common';
import { ofExpiredRevocations } from '../access-token/ended-statement.js';
import { Database } from '../platform/database/database.js';
import { selectStatement } from '../platform/database/statement.js';
import { portionsOf } from '../platform/database/value-list.js';
import { type LinkKey, raiseVersions, unlink } from './links.js';

/** The number of links of one step, within which the purge holds its lease. */
const LINKS_PER_STEP_COUNT = 50;

/**
 * Ends the links that a revocation has ended, before the purge deletes the revocation. Otherwise the links would lead
 * to their customers again (protocol §3.14).
 */
@Injectable()
export class EndedLinks {
  constructor(private readonly database: Database) {}

  /**
   * Ends the links of revocations that have expired, until there are none. The caller deletes these revocations
   * afterwards, if all steps have run.
   *
   * @param size the number of links that one statement reads
   * @param now the time with which the caller then deletes the expired revocations
   * @returns the number of links that each step ended
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const findEnded = selectStatement<[now: Date], LinkKey>(
      `SELECT DISTINCT ancestor.browser_id AS browserId, ancestor.entity_id AS entityId
        FROM ${ofExpiredRevocations('link_ancestor ancestor', 'ancestor.ancestor_id')} LIMIT ${size}`,
    );
    let rows = await this.database.select(findEnded, [now]);
    while (rows.length > 0) {
      for (const links of portionsOf(rows, LINKS_PER_STEP_COUNT)) {
        await this.end(links);
        yield links.length;
      }
      rows = await this.database.select(findEnded, [now]);
    }
  }

  /** `remember` raises the versions of the customers whose links it copies too, so that it copies none of these links. */
  private end(links: LinkKey[]): Promise<void> {
    return this.database.transaction(async (manager) => {
      const ids = links.map(({ entityId }) => entityId);
      await raiseVersions(manager, 'customer', ids);
      await unlink(manager, links);
    });
  }
}
