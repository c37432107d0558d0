import { noteReadable, originWithoutResponses } from './hidden-response.js';
import { RequestError, withRequestErrors } from './request-error.js';

const TIMEOUT_MS = 5_000;
const MAX_ATTEMPTS = 4;
const DEFAULT_DELAY_SECONDS = 2;
export const MAX_DELAY_SECONDS = 5;
/** The lock of the requests that use or change the customer of this browser. */
export const TOKEN_LOCK = 'customer-token';

interface RequestOptions {
  method?: string;
  headers?: Record<string, string>;
  credentials?: 'include';
  /** Sends the request also if the page closes meanwhile. */
  keepalive?: boolean;
  body?: object | undefined;
  bearer?: string;
  /** Sends and stores the identity cookies, one request of all tabs at a time. */
  withCookies?: boolean;
  isRepeatable?: boolean | undefined;
  maxAttempts?: number | undefined;
}

/** The customer of a browser in an organization, or in a group of it, and how the page keeps it. */
export interface ClientSettings {
  /** The URL of the service. */
  url: string;
  client: { client_id: string; organization_id: string };
  groupId: string | undefined;
  /** What the page stores if the browser drops the cookies. */
  withoutCookies: 'refresh_token' | undefined;
}

/** The response to a token request. */
export interface TokenResponse {
  access_token: string;
  entity_id: string;
  expires_in: number;
  token_type: string;
}

interface ErrorBody {
  error: string;
  error_hint?: string;
  request_id?: string;
}

/**
 * Resolves to the JSON of the response, or rejects with a `RequestError`. Repeats the request after temporary errors.
 * With `isRepeatable: false`, only if the error has `Retry-After`: then the service did not carry out the request.
 */
export function request<Result = Record<string, unknown>>(url: string, options: RequestOptions): Promise<Result> {
  const { isRepeatable, maxAttempts, withCookies, ...init } = options;
  const attemptOnce = () => send<Result>(url, withCookies ? { ...init, credentials: 'include' } : init);
  const work = withCookies ? () => oneTabAtATime(TOKEN_LOCK, attemptOnce) : attemptOnce;
  return repeat(work, { isRepeatable, maxAttempts });
}

/** Repeats work, with the lock of the requests that use or change the customer, after temporary errors. */
export function withTokenLock<Result>(
  work: () => Promise<Result>,
  options?: Pick<RequestOptions, 'maxAttempts'>,
): Promise<Result> {
  return repeat(() => oneTabAtATime(TOKEN_LOCK, work), options);
}

/** Repeats work after temporary errors. */
function repeat<Result>(
  attemptOnce: () => Promise<Result>,
  { isRepeatable = true, maxAttempts = MAX_ATTEMPTS }: Pick<RequestOptions, 'isRepeatable' | 'maxAttempts'> = {},
): Promise<Result> {
  return withRequestErrors(async () => {
    let mayHaveSucceeded = false;
    for (let attempt = 1; ; attempt++) {
      try {
        return await attemptOnce();
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        mayHaveSucceeded ||= error.mayHaveSucceeded;
        error.mayHaveSucceeded = mayHaveSucceeded;
        await waitAfter(error, attempt < maxAttempts && (isRepeatable || !mayHaveSucceeded));
      }
    }
  });
}

/** Sends a request once. */
export async function send<Result>(url: string, { bearer, body, headers, ...init }: RequestOptions): Promise<Result> {
  const authorization = bearer ? { Authorization: `Bearer ${bearer}` } : undefined;
  let status = 0;
  let retryAfterSeconds: number | undefined;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, ...authorization },
      body: body ? JSON.stringify(body) : null,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...init,
    });
    status = response.status;
    noteReadable(url);
    retryAfterSeconds = Number(response.headers.get('Retry-After')) || undefined;
    const result = (await response.json()) as Result & ErrorBody; // rejects if a proxy responds with HTML
    if (response.ok) return result;
    const { error, error_hint: hint, request_id: requestId } = result;
    throw new RequestError({ status, error, hint, requestId, retryAfterSeconds });
  } catch (cause) {
    if (cause instanceof RequestError) throw cause;
    const origin = await originWithoutResponses(url, cause, TIMEOUT_MS);
    if (origin) {
      const hint = `CORS: the browser hides the responses of the service from ${origin}. Register this origin.`;
      throw new RequestError({ error: 'origin_not_registered', hint, cause });
    }
    throw new RequestError({ status, error: 'no_response', retryAfterSeconds, cause });
  }
}

/** A URL to which a path is appended. */
export const withoutSlash = (url: string) => url.replace(/\/+$/, '');

/** The URL of the token requests of a group. */
export const tokenUrlOf = ({ url, client, groupId }: ClientSettings) =>
  `${url}/v2/customer/${groupId ? `${client.organization_id}/${groupId}/` : ''}token`;

/** The parameters of a cookie grant. */
export const cookieBodyOf = ({ client }: ClientSettings) => ({
  grant_type: 'cookie',
  response_type: 'token',
  ...client,
});

/** Sends a cookie grant once. The caller has the lock. */
export async function requestTokenByCookies(settings: ClientSettings): Promise<TokenResponse> {
  return tokenOf(await send(tokenUrlOf(settings), { body: cookieBodyOf(settings), credentials: 'include' }));
}

/** The response of a token request. */
export function tokenOf<Response extends TokenResponse>(response: Response): Response {
  if (typeof response?.access_token === 'string') return response;
  throw new RequestError({ error: 'no_response' }); // the JSON is of a network's sign-in page
}

/** Waits before the next attempt. Throws the error if a further attempt is not possible, or would not help soon. */
export async function waitAfter(error: RequestError, mayRepeat: boolean): Promise<void> {
  const delaySeconds = error.retryAfterSeconds ?? DEFAULT_DELAY_SECONDS;
  const { navigator } = globalThis as { navigator?: { onLine?: boolean } }; // Node.js 20 has none
  const isOffline = navigator?.onLine === false;
  if (!mayRepeat || !error.isTemporary || delaySeconds > MAX_DELAY_SECONDS || isOffline) throw error;
  await wait(delaySeconds);
}

/** Waits for these seconds and a random part, so that many clients do not return at the same moment. */
export function wait(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * (1 + Math.random()) * 1000));
}

/** The last work of this tab under each lock. */
const lastTurns = new Map<string, Promise<unknown>>();

/**
 * Two tabs that open together would otherwise create two customers, and the response to a request of an earlier
 * customer could replace the cookies of the next one. Pages without https have no locks. There, the work of each tab
 * takes turns.
 */
export function oneTabAtATime<Result>(lock: string, work: () => Promise<Result>): Promise<Result> {
  const locks = globalThis.navigator?.locks;
  if (locks) return locks.request(lock, work);
  const turn = (lastTurns.get(lock) ?? Promise.resolve()).then(work);
  lastTurns.set(
    lock,
    turn.catch(() => undefined),
  );
  return turn;
}
