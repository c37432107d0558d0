/** A request with limits: a POST if it has a body, and a GET otherwise. */
export interface JsonRequest {
  url: URL;
  headers?: Record<string, string>;
  body?: URLSearchParams;
  timeoutMs: number;
  maxBytes: number;
  /** Ends the request early. */
  signal: AbortSignal;
}

export interface JsonResponse {
  body: unknown;
  /** How long a cache had the response before (RFC 9111 §5.1). */
  ageMs: number;
}

/** A response whose status is not 200. */
export class StatusError extends Error {
  override readonly name = 'StatusError';

  constructor(
    readonly status: number,
    readonly retryAfter: string | null,
  ) {
    super(`the response has status ${status}`);
  }
}

/** A response with status 200 that cannot be used. */
export class MalformedResponseError extends Error {
  override readonly name = 'MalformedResponseError';
}

/**
 * Fetches JSON. Redirects are not followed, because they would send the credentials elsewhere. The time limit covers
 * the body, and the size limit counts the decompressed body. Caches are asked not to respond themselves.
 */
export async function fetchJson({
  url,
  headers = {},
  body,
  timeoutMs,
  maxBytes,
  signal,
}: JsonRequest): Promise<JsonResponse> {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
  signal.addEventListener('abort', abort);
  try {
    signal.throwIfAborted();
    const accept = { Accept: 'application/json', ...headers };
    const options = { redirect: 'manual', cache: 'no-store', signal: controller.signal } as const;
    const response = await fetch(url, { headers: accept, ...options, ...(body && { method: 'POST', body }) });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new StatusError(response.status, response.headers.get('Retry-After'));
    }
    return { body: parseJson(await readText(response, maxBytes)), ageMs: ageMsOf(response.headers.get('Age')) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function ageMsOf(header: string | null): number {
  return header !== null && /^\d+$/.test(header) ? Number(header) * 1000 : 0;
}

async function readText({ body }: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > maxBytes) throw new MalformedResponseError(`the response has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MalformedResponseError('the response is not JSON', { cause });
  }
}

/** The message of an error of `fetchJson`, and the code of the network error. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no response yet';
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? `${error.message}: ${code}` : error.message;
}
