import { QueueFullError } from '../bounded-queue.js';
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
 * The statement, a value or a change of the schema is wrong, so it fails whenever it is sent: syntax, names, grouping
 * (1048 to 1247), values (1264 to 1525, 1690), functions (1305, 1582), keys and constraints (1451, 1452, 3819, 4025).
 * Each other error of a server says that it cannot work now, also an error that this build does not know: the server is
 * full, stopping, read-only or without quorum, has ended the statement, or rejects the account.
 */
const WRONG_STATEMENT_ERRNOS = new Set([
  ...[1048, 1050, 1051, 1052, 1054, 1055, 1056, 1057, 1060, 1061, 1064, 1065, 1066, 1068, 1070, 1071, 1072, 1075, 1091],
  ...[1093, 1101, 1109, 1110, 1111, 1118, 1136, 1138, 1140, 1146, 1170, 1210, 1222, 1235, 1241, 1242, 1247],
  ...[1264, 1265, 1267, 1292, 1300, 1364, 1365, 1366, 1390, 1406, 1411, 1525, 1690],
  ...[1305, 1582, 1451, 1452, 3819, 4025],
]);
const DUPLICATE_ERRNO = 1062;

/** The errors of SQLite for a wrong statement, as above, or for a file that no retry makes usable. */
const SQLITE_PERMANENT = /^SQLITE_(ERROR|CONSTRAINT|MISMATCH|RANGE|MISUSE|TOOBIG|CORRUPT|NOTADB)/;

/** The response did not arrive in time. The statement may have run. */
export class DeadlineExceededError extends Error {
  readonly code = 'DEADLINE_EXCEEDED';

  constructor(milliseconds: number, details = '') {
    super(`the database did not respond within ${Math.max(0, Math.round(milliseconds))} ms${details}`);
  }
}

export class EarlierSchemaError extends Error {
  constructor() {
    super(
      'the database has the schema of a build before 2.0, which this build cannot use and does not change; delete var/ if it is the embedded database, or use an empty database',
    );
  }
}

export class PendingMigrationsError extends Error {
  constructor() {
    super('migrations are pending; run: node dist/cli.js migrate');
  }
}

/** Whether the statement can be sent again because nothing of it remains. */
export function isRolledBack(error: unknown): boolean {
  return ROLLED_BACK_ERRNOS.has((error as DriverError).errno ?? 0) || isLocked(error);
}

export function isLocked(error: unknown): boolean {
  return /^SQLITE_BUSY/.test((error as DriverError).code ?? '');
}

/** Whether the database has sent the error. Another one, such as a refusal inside of a transaction, is the service's. */
export function isOfDatabase(error: unknown): boolean {
  const { errno = 0, code = '' } = error as DriverError;
  return errno > 0 || code.startsWith('SQLITE_');
}

export function isDuplicate(error: unknown): boolean {
  const { errno = 0, code = '' } = error as DriverError;
  return errno === DUPLICATE_ERRNO || /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(code);
}

/** Whether the database is unavailable, or still rolls back after all retries. The caller may repeat the request. */
export function isUnavailable(error: unknown): boolean {
  const { errno = 0, code = '', fatal } = error as DriverError;
  if (error instanceof DeadlineExceededError || error instanceof QueueFullError || fatal) return true;
  if (isDuplicate(error)) return false;
  // the numbers of Node are negative
  if (errno > 0) return !WRONG_STATEMENT_ERRNOS.has(errno);
  if (code.startsWith('SQLITE_')) return !SQLITE_PERMANENT.test(code);
  return (
    // errors of the network (ECONNRESET) and of mysql2 (PROTOCOL_…), but not of the server (ER_…) or of Node (ERR_…)
    /^(E(?!RR?_)[A-Z_]+|PROTOCOL_.*)$/.test(code) || /^Pool is closed/.test(String((error as Error).message))
  );
}

const STATEMENT_BINLOG_ERRNO = 1665;
const SUPPORTED_PLUGINS = 'mysql_native_password, caching_sha2_password and sha256_password';

/**
 * Adds the number and the name of a server's error to its message. An error whose cause is a setting of the server or of
 * the account gets a message that says what to change.
 */
export function explain(error: Error): void {
  const { errno = 0, code = '' } = error as DriverError;
  const [, plugin] = /unknown plugin ([\w-]+)/.exec(error.message) ?? [];
  if (plugin !== undefined)
    error.message = `the database account has the authentication plugin ${plugin}; the service supports ${SUPPORTED_PLUGINS}`;
  if (errno === STATEMENT_BINLOG_ERRNO)
    error.message = 'the database server has binlog_format=STATEMENT; the service needs ROW or MIXED';
  if (errno > 0) error.message += ` (${errno} ${code})`;
}

/** Only after such an error does a connection go back to the pool. After any other, its session may be unusable. */
export function leavesSessionIntact(error: unknown): boolean {
  return isDuplicate(error) || isRolledBack(error);
}

/** Time limit of one statement, including its wait for a connection. */
export const STATEMENT_TIMEOUT_MS = 1_000;

export function remainingMs(backgroundMs: number): number {
  return requestContext.remainingMs() ?? backgroundMs;
}

/**
 * `send` ends within `limitMs`. The deadline of the request, 2.8 s after its first statement, may be earlier.
 *
 * @param limitMs an INSERT of several tables has the time of a request
 */
export function withinDeadline<Result>(send: () => Promise<Result>, limitMs = STATEMENT_TIMEOUT_MS): Promise<Result> {
  const remaining = remainingMs(Infinity);
  if (remaining > limitMs) return send();
  if (remaining <= 0) return Promise.reject(new DeadlineExceededError(0));
  return withTimeout(send(), remaining);
}

/**
 * The work itself continues. Sockets are read once more, as a response may have come while the process was paused.
 *
 * @param limitMs the time limit of which `timeoutMs` are left
 */
export function withTimeout<Result>(work: Promise<Result>, timeoutMs: number, limitMs = timeoutMs): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = () => setImmediate(() => reject(new DeadlineExceededError(limitMs)));
    timer = setTimeout(fail, Math.max(timeoutMs, 0)); // the time may be over already, and Node warns of a negative one
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
