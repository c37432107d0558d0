import { aheadOfDatabaseMs, type Clock } from '../clock.js';
import type { Database } from './database.js';
import { timeOf } from './sql-dialect.js';
import { selectStatement } from './statement.js';

const FIND_TIME = selectStatement<[], { now: Date | string }>(({ now }) => `SELECT ${now} AS now`);

/**
 * The earlier one of the times of the process and of the database. A process whose clock is ahead would delete what
 * other processes still need, such as the revocations of tokens that have not expired.
 */
export async function earlierTime(database: Database, clock: Clock): Promise<Date> {
  const [row] = await database.select(FIND_TIME, []);
  const aheadMs = row ? aheadOfDatabaseMs(timeOf(row.now)) : 0;
  return new Date(clock.now() - Math.max(aheadMs, 0));
}
