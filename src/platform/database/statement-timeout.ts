import { requestContext } from '../request-context/request-context.js';
import { DeadlineExceededError } from './database-errors.js';

/** Time limit of one statement, including its wait for a connection. Its connection is then destroyed. */
export const STATEMENT_TIMEOUT_MS = 1_000;
/** Time limit for reading a whole small table. */
export const TABLE_TIMEOUT_MS = 5_000;

/** Sends a statement. If its request's deadline is earlier than its own time limit, the deadline applies. */
export function withinDeadline<Result>(send: () => Promise<Result>): Promise<Result> {
  const remainingMs = requestContext.deadline()?.remainingMs() ?? Infinity;
  if (remainingMs > STATEMENT_TIMEOUT_MS) return send();
  if (remainingMs <= 0) return Promise.reject(new DeadlineExceededError(0));
  return withTimeout(send(), remainingMs);
}

/** Rejects if work takes longer than `timeoutMs`. The work itself continues. */
export function withTimeout<Result>(work: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceededError(timeoutMs)), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
