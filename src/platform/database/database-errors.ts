import { requestContext } from '../request-context/request-context.js';

/** mysql2 sets `errno`; libsql and the network set `code`. */
interface DriverError {
  errno?: number;
  code?: string;
  fatal?: boolean;
}

/**
 * The server has rolled the statement or its transaction back: deadlock (1213), lock wait (1205), certification conflict
 * of a Group Replication (3101) or Galera (1180) commit, write conflict or changed schema of TiDB (8002 to 9007).
 * Nothing remains, so the transaction can be sent again.
 */
const ROLLED_BACK_ERRNOS = new Set([1213, 1205, 3101, 1180, 8002, 8005, 8022, 8028, 9007]);

/**
 * The server is full, stopping, read-only or without quorum, or rejects the account; from 8501 on, a part of TiDB does
 * not respond, and a COMMIT may have taken effect.
 */
const UNAVAILABLE_ERRNOS = new Set([
  1021, 1040, 1041, 1044, 1045, 1047, 1049, 1053, 1114, 1203, 1226, 1290, 1317, 1461, 1836, 1927, 3100, 3168, 8501,
  9001, 9002, 9003, 9004, 9005,
]);

const SQLITE_UNAVAILABLE = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY)/;

/** The response did not arrive in time. The statement may have run. */
export class DeadlineExceededError extends Error {
  readonly code = 'DEADLINE_EXCEEDED';

  constructor(milliseconds: number) {
    super(`the database did not respond within ${Math.round(milliseconds)} ms`);
  }
}

export class EarlierSchemaError extends Error {
  constructor() {
    super(
      'the database has the schema of a build before 1.0, which this build cannot use and does not change; delete var/ if it is the embedded database, or use an empty database',
    );
  }
}

/** Whether the statement can be sent again because nothing of it remains. */
export function isRolledBack(error: unknown): boolean {
  return ROLLED_BACK_ERRNOS.has((error as DriverError).errno ?? 0) || isLocked(error);
}

export function isLocked(error: unknown): boolean {
  return /^SQLITE_BUSY/.test((error as DriverError).code ?? '');
}

export function isDuplicate(error: unknown): boolean {
  const { errno = 0, code = '' } = error as DriverError;
  return errno === 1062 || /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(code);
}

/** Whether the database is unavailable, or still rolls back after all retries. The caller may repeat the request. */
export function isUnavailable(error: unknown): boolean {
  const { errno = 0, code = '', fatal } = error as DriverError;
  if (error instanceof DeadlineExceededError || fatal) return true;
  if (ROLLED_BACK_ERRNOS.has(errno) || UNAVAILABLE_ERRNOS.has(errno) || SQLITE_UNAVAILABLE.test(code)) return true;
  return (
    // errors of the network (ECONNRESET) and of mysql2 (PROTOCOL_…), but not of the server (ER_…) or of Node (ERR_…)
    /^(E(?!RR?_)[A-Z_]+|PROTOCOL_.*)$/.test(code) ||
    /^(Queue limit reached|Pool is closed|No connections)/.test(String((error as Error).message))
  );
}

/** Whether the connection may be in an unknown state, or its server be unusable. After a rollback, both are usable. */
export function breaksConnection(error: unknown): boolean {
  return isUnavailable(error) && !isRolledBack(error);
}

/** Time limit of one statement, including its wait for a connection. */
export const STATEMENT_TIMEOUT_MS = 1_000;
export const TABLE_TIMEOUT_MS = 5_000;

export function remainingMs(backgroundMs: number): number {
  return requestContext.remainingMs() ?? backgroundMs;
}

/** `send` has its own limit. The deadline of the request, 2.8 s after its first statement, may be earlier. */
export function withinDeadline<Result>(
  send: () => Promise<Result>,
  limitMs: number = STATEMENT_TIMEOUT_MS,
): Promise<Result> {
  const remaining = remainingMs(Infinity);
  if (remaining > limitMs) return send();
  if (remaining <= 0) return Promise.reject(new DeadlineExceededError(0));
  return withTimeout(send(), remaining);
}

/** The work itself continues. Sockets are read once more, as a response may have come while the process was paused. */
export function withTimeout<Result>(work: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => reject(new DeadlineExceededError(timeoutMs))), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
