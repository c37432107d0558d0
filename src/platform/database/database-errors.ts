/** What a driver's error tells: mysql2 numbers it (`errno`), libsql and the network name it (`code`). */
interface DriverError {
  errno?: number;
  code?: string;
  fatal?: boolean;
}

/**
 * The server has rolled the statement back and asks to send it again: deadlock, lock wait, certification conflict of a
 * Group Replication or Galera commit. Every statement of this service may be sent again.
 */
const REPEATABLE = new Set([1213, 1205, 3101, 1180]);

/** The server is there and cannot do its work now, or does not know us: full, stopping, read-only, without quorum. */
const REFUSING = new Set([
  1021, 1040, 1041, 1044, 1045, 1047, 1049, 1053, 1114, 1146, 1203, 1226, 1290, 1317, 1461, 1836, 1927, 3100, 3168,
]);

const REFUSING_SQLITE = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY)/;

/** The answer did not come in time; the connection it was asked on is gone. The statement may have run all the same. */
export class DeadlineExceededError extends Error {
  readonly code = 'DEADLINE_EXCEEDED';

  constructor(milliseconds: number) {
    super(`the database did not answer within ${milliseconds} ms`);
  }
}

export function isRepeatable(error: unknown): boolean {
  return REPEATABLE.has((error as DriverError).errno ?? 0);
}

/** Whether a row with this key exists already. */
export function isDuplicate(error: unknown): boolean {
  const { errno = 0, code = '' } = error as DriverError;
  return errno === 1062 || /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(code);
}

/** Whether the database is away: the caller may come again, and nothing is wrong with the statement. */
export function isUnavailable(error: unknown): boolean {
  const { errno = 0, code = '', fatal } = error as DriverError;
  if (error instanceof DeadlineExceededError || fatal) return true;
  if (REPEATABLE.has(errno) || REFUSING.has(errno) || REFUSING_SQLITE.test(code)) return true;
  return (
    /^(E(?!RR?_)[A-Z_]+|PROTOCOL_.*)$/.test(code) ||
    /^(Queue limit reached|Pool is closed|No connections)/.test(String((error as Error).message))
  );
}
