import { requestContext } from '../request-context/request-context.js';
import { DeadlineExceededError } from './database-errors.js';

/** Time for one statement, its wait for a connection included. Its connection is destroyed after it. */
export const STATEMENT_TIMEOUT_MS = 1_000;
/** Time for reading a whole small table. */
export const TABLE_TIMEOUT_MS = 5_000;

/** Sends a statement. If less than its own time is left of its request's deadline, it has that. */
export function withinDeadline<Result>(send: () => Promise<Result>): Promise<Result> {
  const remainingMs = requestContext.deadline()?.remainingMs() ?? Infinity;
  if (remainingMs > STATEMENT_TIMEOUT_MS) return send();
  if (remainingMs <= 0) return Promise.reject(new DeadlineExceededError(0));
  return withTimeout(send(), remainingMs);
}

/** Waits so long for some work, which goes on. */
export function withTimeout<Result>(work: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceededError(timeoutMs)), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
