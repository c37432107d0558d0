import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { uuidv7 } from '../platform/uuid.js';
import { CustomerKeepers } from './customer-keepers.js';

const DAY = 86_400_000;
/** Days: the two years that the cookies live, and one for clocks and time zones. */
const IDLE = 731;
/** Customers that are asked about at once: a browser may have any number, and a statement may not. */
const SOME = 500;
/** No browser has it: a browser that is being deleted is not recognised any more. */
const NO_SECRET = '';

/**
 * Deletes browsers whose cookies have expired, with their customers; customers made by agents have no browser and stay.
 *
 * Ids grow with time, so those old enough to be idle are at the beginning of the table: no index is needed to find them.
 */
@Injectable()
export class IdleBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly keepers: CustomerKeepers,
  ) {}

  /**
   * Deletes the idle ones of the next browsers whose id comes after `after`.
   *
   * @returns how many identities were deleted, and the last id looked at: `undefined` when there are no more
   */
  async deleteBatch(after: string, size: number): Promise<{ deleted: number; last: string | undefined }> {
    const idleSince = this.clock.now() - IDLE * DAY;
    const day = Math.floor(idleSince / DAY);
    const old = await this.after(after, uuidv7(idleSince), size);
    const unseen = old
      .filter((row) => row.last_seen_day !== null && row.last_seen_day < day)
      .map((row) => row.entity_id);
    const idle = await this.withoutKept(unseen);
    const last = old.length < size ? undefined : old.at(-1)?.entity_id;
    return { deleted: idle.length === 0 ? 0 : await this.deleteIdle(idle, day), last };
  }

  /** Those of some browsers none of whose customers is somebody beside the browser. */
  private async withoutKept(browsers: string[]): Promise<string[]> {
    if (browsers.length === 0) return [];
    const sql = `SELECT entity_id, browser_id FROM customer_identity WHERE browser_id IN (${browsers.map(() => '?').join()})`;
    const customers = await this.database.select<{ entity_id: string; browser_id: string }>(sql, browsers);
    const ids = customers.map(({ entity_id }) => entity_id);
    const kept = new Set<string>();
    for (let start = 0; start < ids.length; start += SOME) {
      for (const id of await this.keepers.kept(ids.slice(start, start + SOME))) kept.add(id);
    }
    const needed = new Set(
      customers.filter(({ entity_id }) => kept.has(entity_id)).map(({ browser_id }) => browser_id),
    );
    return browsers.filter((browser) => !needed.has(browser));
  }

  /** One that comes back at this moment is kept: either this sees its visit, or its visit sees this. */
  private async deleteIdle(idle: string[], day: number): Promise<number> {
    const some = `(${idle.map(() => '?').join()})`;
    const shut = `UPDATE customer_identity SET secret_hash = ? WHERE entity_id IN ${some} AND last_seen_day < ?`;
    await this.database.change(shut, [NO_SECRET, ...idle, day]);
    const gone = `SELECT entity_id FROM customer_identity WHERE entity_id IN ${some} AND secret_hash = ?`;
    const browsers = await this.database.select<{ entity_id: string }>(gone, [...idle, NO_SECRET]);
    return browsers.length === 0 ? 0 : this.deleteOf(browsers.map((row) => row.entity_id));
  }

  /** The next rows by their key alone: what is not idle is passed over here and not by the database, which would walk on. */
  private after(
    after: string,
    before: string,
    size: number,
  ): Promise<{ entity_id: string; last_seen_day: number | null }[]> {
    const sql = `SELECT entity_id, last_seen_day FROM customer_identity
      WHERE entity_id > ? AND entity_id < ? ORDER BY entity_id LIMIT ${size}`;
    return this.database.select(sql, [after, before]);
  }

  private deleteOf(browsers: string[]): Promise<number> {
    const sql = `DELETE FROM customer_identity WHERE browser_id IN (${browsers.map(() => '?').join()})`;
    return this.database.change(sql, browsers);
  }
}
