/** What is known about a failure. */
interface Failure {
  status?: number;
  error: string;
  hint?: string | undefined;
  requestId?: string | undefined;
  retryAfterSeconds?: number | undefined;
  cause?: unknown;
}

/** Why a function of this package failed. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** The status of the response, or 0 if no response arrived. */
  readonly status: number;
  /** The `error` of the response, or a code of this package. */
  error: string;
  /** The `error_hint` of the response. */
  readonly hint: string | undefined;
  /** The operator of the service finds the request in the log by this id. */
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Whether the same call may succeed later. */
  readonly isTemporary: boolean;
  /** Whether the service may have carried out one of the attempts. */
  mayHaveSucceeded: boolean;

  constructor({ status = 0, error, hint, requestId, retryAfterSeconds, cause }: Failure) {
    super(`${status} ${error} ${hint ?? ''}`.trim(), { cause });
    this.status = status;
    this.error = error;
    this.hint = hint;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
    this.isTemporary = status === 429 || status >= 500 || (error === 'no_response' && status < 400);
    const isUnread = error === 'origin_not_registered';
    this.mayHaveSucceeded = (this.isTemporary || isUnread) && !retryAfterSeconds;
  }
}

/** Runs work of a public function. Each error of the browser or of a callback becomes a `RequestError`. */
export async function withRequestErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    throw asRequestError(cause);
  }
}

export function asRequestError(cause: unknown): RequestError {
  if (cause instanceof RequestError) return cause;
  // A browser whose user blocks the cookies of a site also refuses locks and storage.
  const isBlocked = cause instanceof Error && cause.name === 'SecurityError';
  return new RequestError({ error: isBlocked ? 'cookies_blocked' : 'unexpected', cause });
}
