/** What the service uses of the driver's connection. */
interface SqliteConnection {
  pragma(text: string): unknown;
}

const BUSY_TIMEOUT_MS = 5_000;
const PAUSE_MS = 20;
const MAX_ATTEMPTS = BUSY_TIMEOUT_MS / PAUSE_MS;

/**
 * Prepares a connection to a database file. Statements wait for the locks of other processes. Only the change of a new
 * file to a write-ahead log (WAL) does not: it fails at once while another process opens the file, so it is repeated.
 */
export function prepareFile(database: SqliteConnection): void {
  database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  for (let attempt = 1; ; attempt++) {
    try {
      return void database.pragma('journal_mode = WAL');
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || attempt === MAX_ATTEMPTS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS); // TypeORM calls this function synchronously
    }
  }
}
