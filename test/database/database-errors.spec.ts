import { describe, expect, it } from 'vitest';
import {
  DeadlineExceededError,
  isDuplicate,
  isRolledBack,
  isUnavailable,
} from '../../src/platform/database/database-errors.js';

const driverError = (details: object) => Object.assign(new Error('of a driver'), details);

/** Errors of TiDB, which has no names for most of them. */
const ofTiDB = (errnos: number[]) =>
  errnos.map((errno): [string, object] => [`error ${errno} of TiDB`, { errno, code: 'UNKNOWN_CODE_PLEASE_REPORT' }]);

describe('the classification of database errors', () => {
  it.each<[string, object]>([
    ['deadlock', { errno: 1213, code: 'ER_LOCK_DEADLOCK' }],
    ['lock wait', { errno: 1205, code: 'ER_LOCK_WAIT_TIMEOUT' }],
    ['certification of a Group Replication', { errno: 3101, code: 'ER_TRANSACTION_ROLLBACK_DURING_COMMIT' }],
    ['certification of a Galera', { errno: 1180, code: 'ER_ERROR_DURING_COMMIT' }],
    ...ofTiDB([8002, 8005, 8022, 8028, 9007]),
    ['a SQLite that is locked', { code: 'SQLITE_BUSY' }],
  ])(
    '%s: the statement may be repeated, and the database counts as unavailable after the last attempt',
    (_what, details) => {
      const error = driverError(details);
      expect([isRolledBack(error), isUnavailable(error), isDuplicate(error)]).toEqual([true, true, false]);
    },
  );

  it.each<[string, object]>([
    ['refused', { code: 'ECONNREFUSED', fatal: true }],
    ['reset', { code: 'ECONNRESET' }],
    ['unreachable', { code: 'EHOSTUNREACH' }],
    ['no response to a connection attempt', { code: 'ETIMEDOUT' }],
    ['an unknown host name', { code: 'ENOTFOUND' }],
    ['an unavailable name server', { code: 'EAI_AGAIN' }],
    ['lost in the middle', { code: 'PROTOCOL_CONNECTION_LOST' }],
    ['too many connections', { errno: 1040, code: 'ER_CON_COUNT_ERROR' }],
    ['shutting down', { errno: 1053, code: 'ER_SERVER_SHUTDOWN' }],
    ['no quorum', { errno: 1047, code: 'ER_UNKNOWN_COM_ERROR' }],
    ['read-only', { errno: 1290, code: 'ER_OPTION_PREVENTS_STATEMENT' }],
    ['disk full', { errno: 1021, code: 'ER_DISK_FULL' }],
    ['wrong credentials', { errno: 1045, code: 'ER_ACCESS_DENIED_ERROR' }],
    ['not migrated', { errno: 1146, code: 'ER_NO_SUCH_TABLE' }],
    ...ofTiDB([8501, 9001, 9002, 9003, 9004, 9005]),
    ['a SQLite on a full disk', { code: 'SQLITE_FULL' }],
    ['a SQLite on a broken disk', { code: 'SQLITE_IOERR_READ' }],
  ])('%s: the database is unavailable', (_what, details) => {
    const error = driverError(details);
    expect([isUnavailable(error), isRolledBack(error), isDuplicate(error)]).toEqual([true, false, false]);
  });

  it('a timeout and a full queue: the database is unavailable', () => {
    expect(isUnavailable(new DeadlineExceededError(1_000))).toBe(true);
    expect(isUnavailable(new Error('Queue limit reached.'))).toBe(true);
    expect(isUnavailable(new Error('Pool is closed.'))).toBe(true);
    expect(isRolledBack(new DeadlineExceededError(1_000))).toBe(false);
  });

  it.each<[string, object]>([
    ['MySQL', { errno: 1062, code: 'ER_DUP_ENTRY' }],
    ['SQLite, of a primary key', { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' }],
    ['SQLite, of a unique index', { code: 'SQLITE_CONSTRAINT_UNIQUE' }],
  ])('a duplicate key: %s', (_what, details) => {
    const error = driverError(details);
    expect([isDuplicate(error), isUnavailable(error), isRolledBack(error)]).toEqual([true, false, false]);
  });

  it.each<[string, object]>([
    ['syntax', { errno: 1064, code: 'ER_PARSE_ERROR' }],
    ['an unknown column', { errno: 1054, code: 'ER_BAD_FIELD_ERROR' }],
    ['too long a text', { errno: 1406, code: 'ER_DATA_TOO_LONG' }],
    ['null in a column that has none', { code: 'SQLITE_CONSTRAINT_NOTNULL' }],
    ['an error of SQLite', { code: 'SQLITE_ERROR' }],
    ['an error of the service itself', {}],
  ])('%s: the statement is wrong', (_what, details) => {
    const error = driverError(details);
    expect([isUnavailable(error), isRolledBack(error), isDuplicate(error)]).toEqual([false, false, false]);
  });
});
