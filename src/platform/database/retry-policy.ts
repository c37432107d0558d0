import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceUnavailableException } from '@nestjs/common';
import { isLocked, isRolledBack, isUnavailable, PendingMigrationsError } from './database-errors.js';

interface RetryRules {
  attempts: number;
  /** The pause after a failed attempt. The number of the first attempt is 1. */
  pauseMs(attempt: number): number;
  isRetryable(error: unknown): boolean;
}

export class RetryPolicy {
  constructor(private readonly rules: RetryRules) {}

  /** @throws the error of the last attempt, or the first one that is not retryable */
  async run<Result>(work: () => Promise<Result>, onRetry?: (error: unknown) => void): Promise<Result> {
    const { attempts, pauseMs, isRetryable } = this.rules;
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt >= attempts || !isRetryable(error)) throw error;
        onRetry?.(error);
        await sleep(pauseMs(attempt));
      }
    }
  }
}

/** A statement or a transaction. On a cluster, the commit of the slower process fails and is rolled back. */
export const ROLLED_BACK = new RetryPolicy({
  attempts: 5,
  // processes that collided must not collide again at the same moment
  pauseMs: (attempt) => Math.random() * 20 * attempt,
  isRetryable: isRolledBack,
});

export const SQLITE_LOCK = new RetryPolicy({ attempts: 500, pauseMs: () => 10, isRetryable: isLocked });

const START_PAUSE_MS = 1_000;

export function databaseAtStart(maxWaitMs: number): RetryPolicy {
  const retries = Math.ceil(maxWaitMs / START_PAUSE_MS);
  return new RetryPolicy({
    attempts: 1 + retries,
    pauseMs: () => START_PAUSE_MS,
    isRetryable: (error) => error instanceof PendingMigrationsError || isOutage(error) || isUnavailable(error),
  });
}

function isOutage(error: unknown): boolean {
  return error instanceof ServiceUnavailableException;
}
