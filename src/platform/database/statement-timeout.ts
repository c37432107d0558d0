import { requestContext } from '../request-context/request-context.js';
import { DeadlineExceededError } from './database-errors.js';

/** Time limit of one statement, including its wait for a connection. */
export const STATEMENT_TIMEOUT_MS = 1_000;
/** Time limit for reading a whole small table. */
export const TABLE_TIMEOUT_MS = 5_000;

/** Milliseconds until the deadline of the request, or `backgroundMs` outside of requests. */
export function remainingMs(backgroundMs: number): number {
  return requestContext.deadline()?.remainingMs() ?? backgroundMs;
}

/**
 * Sends a statement. `send` has its own limit of STATEMENT_TIMEOUT_MS. This function adds the deadline of the request,
 * 2.8 s after its first statement, where that is earlier (request-context/deadline.ts).
 */
export function withinDeadline<Result>(send: () => Promise<Result>): Promise<Result> {
  const remaining = remainingMs(Infinity);
  if (remaining > STATEMENT_TIMEOUT_MS) return send();
  if (remaining <= 0) return Promise.reject(new DeadlineExceededError(0));
  return withTimeout(send(), remaining);
}

/** Rejects if work takes longer than `timeoutMs`. The work itself continues. */
export function withTimeout<Result>(work: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceededError(timeoutMs)), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
