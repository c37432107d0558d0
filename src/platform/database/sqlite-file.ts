/** What the service uses of the driver's connection. */
interface SqliteConnection {
  pragma(text: string): unknown;
}

const BUSY_TIMEOUT_MS = 5_000;
const PAUSE_MS = 20;

/**
 * Prepares a connection to a database file. Statements wait up to 5 s for the locks of other processes. Only the change
 * of a new file to a write-ahead log (WAL) does not wait: it fails at once while another process opens the file. So the
 * change is repeated for up to 5 s.
 */
export function prepareFile(database: SqliteConnection): void {
  database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  const deadlineMs = performance.now() + BUSY_TIMEOUT_MS;
  for (;;) {
    try {
      return void database.pragma('journal_mode = WAL');
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || performance.now() >= deadlineMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS); // TypeORM calls this function synchronously
    }
  }
}
