/** The services of which this page has read a response. So its origin is registered there. */
const readable = new Set<string>();

/** The services of which the page could not read the last response, which may have been lost. */
const unread = new Set<string>();

/** The URL of the service, if a URL is that of a customer route. */
const serviceOf = (url: string) => /^(.+)\/v2\/customer\//.exec(url)?.[1] ?? '';

export function noteReadable(url: string): void {
  readable.add(serviceOf(url));
}

/**
 * The origin of this page if the browser hides the responses of a route from it, although the service responds. The
 * keys of the service show this, because each page may read them. One lost response shows nothing: it needs two in a
 * row.
 */
export async function originWithoutResponses(url: string, cause: unknown, timeoutMs: number) {
  const { origin } = globalThis as { origin?: string };
  const service = serviceOf(url);
  if (!origin || !service || !(cause instanceof TypeError) || readable.has(service)) return undefined;
  if (!unread.has(service)) {
    unread.add(service);
    return undefined;
  }
  const options = { signal: AbortSignal.timeout(timeoutMs), cache: 'no-store' } as const;
  const keys = await fetch(`${service}/.well-known/jwks.json`, options).catch(() => undefined);
  return keys?.ok ? origin : undefined;
}
