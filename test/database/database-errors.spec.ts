import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { ServiceUnavailableException } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { QueueFullError } from '../../src/platform/bounded-queue.js';
import {
  DeadlineExceededError,
  explain,
  isDuplicate,
  isRolledBack,
  isUnavailable,
  withTimeout,
} from '../../src/platform/database/database-errors.js';
import { databaseAtStart, type RetryPolicy, ROLLED_BACK } from '../../src/platform/database/retry-policy.js';
import { type RequestContext, requestContext } from '../../src/platform/request-context/request-context.js';

const driverError = (details: object) => Object.assign(new Error('of a driver'), details);

/** Errors of each class. Those of TiDB have a number only; the others are MySQL's, SQLite's and the network's. */
const REPEATABLE = [
  ...[1213, 1205, 3101, 1180, 8002, 8005, 8022, 8028, 9007].map((errno) => ({ errno })),
  { code: 'SQLITE_BUSY' },
];
/**
 * The server is read-only, out of space, stopping or without quorum, has too many connections, rejects the account, or
 * has ended the statement by a limit or an administrator. The last numbers are those that no server has yet.
 */
const NOT_NOW = [
  ...[1290, 1792, 1836, 1969, 3024, 1317, 1927, 1040, 1203, 1226, 1129, 1130, 1021, 1114, 1028, 1037, 1041, 1053, 1047],
  ...[1105, 1142, 1045, 1698, 4151, 3118, 1862, 4031, 3100, 3168, 1015, 1026, 1030, 1034, 1194, 1461, 1615],
  ...[1243, 1412, 1478, 1568, 1637, 1785, 3098, 3572, 8501, 9001, 9002, 9003, 9004, 9005, 59_999, 65_000],
];
const UNAVAILABLE = [
  ...NOT_NOW.flatMap((errno) => [{ errno }, { errno, code: 'ER_X' }]),
  ...['SQLITE_READONLY', 'SQLITE_NOMEM', 'SQLITE_PROTOCOL'].map((code) => ({ code })),
  ...['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'].map((code) => ({ code })),
  ...['PROTOCOL_CONNECTION_LOST', 'SQLITE_FULL', 'SQLITE_IOERR_READ'].map((code) => ({ code })),
  new QueueFullError(),
  { message: 'Pool is closed.' },
  new DeadlineExceededError(1_000),
];
const DUPLICATE = [
  { errno: 1062, code: 'ER_DUP_ENTRY' },
  { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' },
  { code: 'SQLITE_CONSTRAINT_UNIQUE' },
];
const WRONG = [
  ...[1064, 1054, 1146, 1406].map((errno) => ({ errno, code: 'ER_PARSE_ERROR' })),
  { code: 'SQLITE_CONSTRAINT_NOTNULL' },
  ...['SQLITE_ERROR', 'SQLITE_CORRUPT', 'SQLITE_NOTADB'].map((code) => ({ code })),
  {},
];

describe('the class of a database error', () => {
  it.each<[string, object[], { rolledBack: boolean; unavailable: boolean; duplicate: boolean }]>([
    ['may be repeated', REPEATABLE, { rolledBack: true, unavailable: true, duplicate: false }],
    ['means that the database is unavailable', UNAVAILABLE, { rolledBack: false, unavailable: true, duplicate: false }],
    ['means that the key exists', DUPLICATE, { rolledBack: false, unavailable: false, duplicate: true }],
    ['means that the statement is wrong', WRONG, { rolledBack: false, unavailable: false, duplicate: false }],
  ])('%s', (_, errors, expected) => {
    for (const details of errors) {
      const error = details instanceof Error ? details : driverError(details);
      const of = { rolledBack: isRolledBack(error), unavailable: isUnavailable(error), duplicate: isDuplicate(error) };
      expect({ details, ...of }).toEqual({ details, ...expected });
    }
  });
});

describe('a retry policy', () => {
  const deadlock = () => driverError({ errno: 1213 });
  const syntaxError = () => driverError({ errno: 1064 });
  const rejected = () => driverError({ errno: 1045 });
  const away = () => new ServiceUnavailableException('away');

  const pausesMs: number[] = [];
  beforeAll(() => {
    vi.spyOn(timers, 'setTimeout').mockImplementation(async (delayMs = 0) => void pausesMs.push(delayMs) as never);
    syncBuiltinESMExports(); // the named import of the service then has the spy, too
  });
  afterAll(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });

  it.each<[string, RetryPolicy, () => Error, number, number]>([
    ['a statement that was rolled back', ROLLED_BACK, deadlock, 5, 20 * 4],
    ['an invalid statement', ROLLED_BACK, syntaxError, 1, 0],
    ['a statement whose response was lost', ROLLED_BACK, away, 1, 0],
    ['a connection of a command that does not wait', databaseAtStart(0), rejected, 1, 0],
    ['a connection of a command that waits 1.5 s', databaseAtStart(1_500), rejected, 3, 1_000],
    ['an invalid statement of a start', databaseAtStart(1_500), syntaxError, 1, 0],
  ])('tries %s as often as it declares, after a pause each', async (_, policy, error, attempts, maxPauseMs) => {
    pausesMs.length = 0;
    const work = vi.fn(() => Promise.reject(error()));
    const onRetry = vi.fn();
    await expect(policy.run(work, onRetry)).rejects.toThrow(error().message);
    for (const counted of [work.mock.calls, [...onRetry.mock.calls, 'the last attempt'], [...pausesMs, 'no pause']])
      expect(counted).toHaveLength(attempts);
    expect(Math.max(0, ...pausesMs)).toBeLessThanOrEqual(maxPauseMs);
  });

  it('returns the result of the first attempt that succeeds', async () => {
    const work = vi.fn().mockRejectedValueOnce(deadlock()).mockResolvedValue('rows');
    expect(await ROLLED_BACK.run(work)).toBe('rows');
    expect(work).toHaveBeenCalledTimes(2);
  });
});

it('the time of the statements of a request starts with the first one, and is negative after it has passed', () => {
  const context: Partial<RequestContext> = {};
  const remaining = () => requestContext.run(context as RequestContext, () => requestContext.remainingMs());
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  expect(remaining()).toBe(2_800);
  clock.mockReturnValue(3_801);
  expect(remaining()).toBe(-1);
  clock.mockRestore();
  expect(requestContext.remainingMs()).toBeUndefined();
});

it('work ends at once if its time is over already, without a negative timer, of which Node warns', async () => {
  const timer = vi.spyOn(globalThis, 'setTimeout');
  await expect(withTimeout(new Promise(() => undefined), -1, 1_000)).rejects.toThrow(DeadlineExceededError);
  expect(timer.mock.calls.map(([, delayMs]) => delayMs)).toEqual([0]);
  timer.mockRestore();
});

it('the message of an error of a server has its number and its name, that of another error has neither', () => {
  const messageOf = (details: object) => {
    const error = driverError(details);
    explain(error);
    return error.message;
  };
  expect(messageOf({ errno: 1040, code: 'ER_CON_COUNT_ERROR' })).toBe('of a driver (1040 ER_CON_COUNT_ERROR)');
  expect(messageOf({ errno: -111, code: 'ECONNREFUSED' })).toBe('of a driver');
});
