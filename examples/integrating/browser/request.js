const TIMEOUT_MS = 5_000;
const MAX_ATTEMPTS = 4;
const DEFAULT_DELAY_SECONDS = 2;
const MAX_DELAY_SECONDS = 5;

/** Why a request failed. */
export class RequestError extends Error {
  name = 'RequestError';

  constructor({ status = 0, error, hint, requestId, retryAfterSeconds, cause }) {
    super(`${status} ${error} ${hint ?? ''}`.trim(), { cause });
    Object.assign(this, { status, error, hint, requestId, retryAfterSeconds });
    this.isTemporary = status === 429 || status >= 500 || (error === 'no_response' && status < 400);
    this.mayHaveSucceeded = this.isTemporary && !retryAfterSeconds;
  }
}

/**
 * Resolves to the JSON of the response, or rejects with a `RequestError`. Repeats the request after temporary errors.
 * With `isRepeatable: false`, only if the error has `Retry-After`: then the service did not carry out the request.
 */
export async function request(url, { isRepeatable = true, maxAttempts = MAX_ATTEMPTS, withCookies, ...init }) {
  const attemptOnce = () => send(url, withCookies ? { ...init, credentials: 'include' } : init);
  let mayHaveSucceeded = false;
  for (let attempt = 1; ; attempt++) {
    try {
      return await (withCookies ? oneTabAtATime(attemptOnce) : attemptOnce());
    } catch (error) {
      mayHaveSucceeded ||= error.mayHaveSucceeded;
      error.mayHaveSucceeded = mayHaveSucceeded;
      const delaySeconds = error.retryAfterSeconds ?? DEFAULT_DELAY_SECONDS;
      const mayRepeat = error.isTemporary && (isRepeatable || !mayHaveSucceeded);
      if (!mayRepeat || attempt >= maxAttempts || delaySeconds > MAX_DELAY_SECONDS) throw error;
      await wait(delaySeconds);
    }
  }
}

async function send(url, { bearer, body, ...init }) {
  if (bearer) init.headers = { ...init.headers, Authorization: `Bearer ${bearer}` };
  const fields = { error: 'no_response' };
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), signal, ...init });
    fields.status = response.status;
    fields.retryAfterSeconds = Number(response.headers.get('Retry-After')) || undefined;
    const result = await response.json(); // rejects if a proxy responds with HTML
    if (response.ok) return result;
    Object.assign(fields, { error: result.error, hint: result.error_hint, requestId: result.request_id });
  } catch (cause) {
    fields.cause = cause;
  }
  throw new RequestError(fields);
}

/** Waits for these seconds and a random part, so that many clients do not return at the same moment. */
export function wait(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * (1 + Math.random()) * 1000));
}

/** Two tabs that open together would otherwise create two customers. Pages without https have no locks. */
function oneTabAtATime(work) {
  return navigator.locks ? navigator.locks.request('customer-token', work) : work();
}
