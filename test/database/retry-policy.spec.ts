import { ServiceUnavailableException } from '@nestjs/common';
import { expect, it, vi } from 'vitest';
import {
  databaseAtStart,
  IDEMPOTENT_STATEMENT,
  LEASE_STATEMENT,
  type RetryPolicy,
  ROLLED_BACK_STATEMENT,
} from '../../src/platform/database/retry-policy.js';
import { type RequestContext, requestContext } from '../../src/platform/request-context/request-context.js';

const deadlock = () => Object.assign(new Error('deadlock'), { errno: 1213 });
const syntaxError = () => Object.assign(new Error('syntax'), { errno: 1064 });

/** Runs work that always fails. Returns the number of attempts and of announced retries. */
async function failingRun(policy: RetryPolicy, error: () => Error): Promise<{ attempts: number; pauses: number }> {
  let attempts = 0;
  let pauses = 0;
  const work = async () => {
    attempts++;
    throw error();
  };
  await expect(policy.run(work, () => pauses++)).rejects.toThrow(error().message);
  return { attempts, pauses };
}

it.each<[string, RetryPolicy, () => Error, number]>([
  ['a statement that was rolled back', ROLLED_BACK_STATEMENT, deadlock, 5],
  ['an invalid statement', ROLLED_BACK_STATEMENT, syntaxError, 1],
  [
    'an idempotent statement whose response was lost',
    IDEMPOTENT_STATEMENT,
    () => new ServiceUnavailableException('away'),
    2,
  ],
  ['an idempotent statement that failed', IDEMPOTENT_STATEMENT, syntaxError, 1],
  ['a statement about a lease', LEASE_STATEMENT, deadlock, 10],
  ['a connection of a command that does not wait', databaseAtStart(0), syntaxError, 1],
  ['a connection of a command that waits 1.5 s', databaseAtStart(1_500), syntaxError, 3],
])('%s is tried as often as its policy declares', async (_, policy, error, attempts) => {
  expect(await failingRun(policy, error)).toEqual({ attempts, pauses: attempts - 1 });
});

it('a policy returns the result of the first attempt that succeeds', async () => {
  const work = vi.fn().mockRejectedValueOnce(deadlock()).mockResolvedValue('rows');
  expect(await ROLLED_BACK_STATEMENT.run(work)).toBe('rows');
  expect(work).toHaveBeenCalledTimes(2);
});

it('the time of the statements of a request starts with the first one, and is negative after it has passed', () => {
  const context: Partial<RequestContext> = {};
  const remaining = () => requestContext.run(context as RequestContext, () => requestContext.remainingMs());
  expect(remaining()).toBeGreaterThan(2_700);
  expect(remaining()).toBeLessThanOrEqual(2_800);
  context.deadline = performance.now() - 1;
  expect(remaining()).toBeLessThan(0);
  expect(requestContext.remainingMs()).toBeUndefined();
});
