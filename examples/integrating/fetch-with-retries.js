const MAX_ATTEMPTS = 4;
const TIMEOUT_MS = 5_000;
const MIN_TIMEOUT_MS = 2_000;
const DEFAULT_DELAY_SECONDS = 2;
const MAX_RANDOM_DELAY_SECONDS = 3;
const TOKEN = /^[!-~]{1,8192}$/;

/**
 * Sends a request that may be repeated. Repeats it after 408, 429 and 5xx, and if the connection fails. The function
 * takes at most `maxWaitSeconds` in all. If `Retry-After` is too long for this, the function returns the response.
 * `init` may be a function that makes the options of each attempt.
 */
export async function fetchWithRetries(url, init, maxWaitSeconds = 10, maxAttempts = MAX_ATTEMPTS) {
  const endMs = Date.now() + maxWaitSeconds * 1000;
  for (let attempt = 1; ; attempt++) {
    const timeoutMs = Math.max(MIN_TIMEOUT_MS, Math.min(TIMEOUT_MS, Math.round(endMs - Date.now())));
    const options = typeof init === 'function' ? await init() : init;
    const signal = AbortSignal.timeout(timeoutMs);
    const result = await fetch(url, { ...options, signal }).catch((error) => ({ error }));
    const mayRepeat = result.error || [408, 429].includes(result.status) || result.status >= 500;
    const delaySeconds = Number(result.headers?.get('Retry-After')) || DEFAULT_DELAY_SECONDS;
    const remainingMs = endMs - MIN_TIMEOUT_MS - Date.now();
    if (mayRepeat && attempt < maxAttempts && delaySeconds * 1000 <= remainingMs) {
      const randomSeconds = Math.random() * Math.min(delaySeconds, MAX_RANDOM_DELAY_SECONDS);
      const delayMs = Math.min((delaySeconds + randomSeconds) * 1000, remainingMs);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      continue;
    }
    if (result.error) throw result.error;
    return result;
  }
}

/**
 * Resolves to the JSON of a response. Rejects with an error that has `status`, `error`, `hint`, `requestId` and
 * `retryAfterSeconds`.
 */
export async function readResult(response, failure) {
  const result = await response.json().catch(() => undefined); // a proxy may respond with HTML
  if (response.ok && result) return result;
  const { error, error_hint: hint, request_id: requestId } = result ?? {};
  const message = [`${failure}: ${response.status} ${error}`, hint, requestId].filter(Boolean).join(', ');
  const retryAfterSeconds = Number(response.headers.get('Retry-After')) || undefined;
  throw Object.assign(new Error(message), { status: response.status, error, hint, requestId, retryAfterSeconds });
}

/** Whether a value can be sent as a token. Any other one is no token of the service. */
export const isToken = (value) => typeof value === 'string' && TOKEN.test(value);

/** The headers with a bearer token. The error of `fetch` for a malformed token would contain the token. */
export function bearer(token) {
  if (!isToken(token)) throw Object.assign(new Error('malformed token'), { error: 'malformed_token' });
  return { Authorization: `Bearer ${token}` };
}

/** Whether the same call may succeed later. After a permanent error a person must act. */
export function isTemporary({ status, error }) {
  if (status === undefined) return error === undefined; // no response arrived
  return status < 400 || status === 408 || status === 429 || status >= 500;
}

/** Writes one line. Alert on `permanent error`, and on `no success for` more than 60 s. */
export function logError(error, secondsSinceSuccess) {
  const kind = isTemporary(error) ? 'temporary' : 'permanent';
  const cause = error.cause ? ` (${error.cause.code ?? error.cause.message})` : '';
  const duration = secondsSinceSuccess === undefined ? '' : `, no success for ${secondsSinceSuccess} s`;
  process.stderr.write(`${kind} error: ${error.message}${cause}${duration}\n`);
}
