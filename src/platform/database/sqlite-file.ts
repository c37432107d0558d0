import { SQLITE_LOCK } from './retry-policy.js';
import type { SqliteConnection } from './sqlite-statements.js';

/**
 * Prepares a connection to a database file. The driver is synchronous, so no statement waits for the lock of another
 * process: it fails at once, and its caller repeats it. The file gets a write-ahead log (WAL), so that reads need no lock.
 */
export async function prepareFile(connection: SqliteConnection): Promise<void> {
  connection.pragma('busy_timeout = 0');
  await SQLITE_LOCK.run(async () => void connection.pragma('journal_mode = WAL'));
}
