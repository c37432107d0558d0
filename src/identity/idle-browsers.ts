import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { uuidv7 } from '../platform/uuid.js';

const DAY = 86_400_000;
/** Days: the two years that the cookies live, and one for clocks and time zones. */
const IDLE = 731;
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
  ) {}

  /**
   * Deletes the idle ones of the next browsers whose id comes after `after`.
   *
   * @returns how many identities were deleted, and the last id looked at: `undefined` when there are no more
   */
  async deleteBatch(after: string, size: number): Promise<{ deleted: number; last: string | undefined }> {
    const idleSince = this.clock.now() - IDLE * DAY;
    const day = Math.floor(idleSince / DAY);
    const idle = await this.idleAfter(after, uuidv7(idleSince), day, size);
    if (idle.length === 0) return { deleted: 0, last: undefined };
    const some = `(${idle.map(() => '?').join()})`;
    // one that comes back at this moment is kept: either this sees its visit, or its visit sees this
    const shut = `UPDATE customer_identity SET secret_hash = ? WHERE entity_id IN ${some} AND last_seen_day < ?`;
    await this.database.change(shut, [NO_SECRET, ...idle, day]);
    const gone = await this.ids(`entity_id IN ${some} AND secret_hash = ?`, [...idle, NO_SECRET]);
    const deleted = gone.length === 0 ? 0 : await this.deleteOf(gone);
    return { deleted, last: idle.length < size ? undefined : idle.at(-1) };
  }

  private idleAfter(after: string, before: string, day: number, size: number): Promise<string[]> {
    const where = `entity_id > ? AND entity_id < ? AND last_seen_day < ? ORDER BY entity_id LIMIT ${size}`;
    return this.ids(where, [after, before, day]);
  }

  private deleteOf(browsers: string[]): Promise<number> {
    const sql = `DELETE FROM customer_identity WHERE browser_id IN (${browsers.map(() => '?').join()})`;
    return this.database.change(sql, browsers);
  }

  private async ids(where: string, parameters: (string | number)[]): Promise<string[]> {
    const sql = `SELECT entity_id FROM customer_identity WHERE ${where}`;
    const rows = await this.database.select<{ entity_id: string }>(sql, parameters);
    return rows.map((row) => row.entity_id);
  }
}
