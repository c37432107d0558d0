import type { Interception } from './broken-case.js';

/** Changes the requests and the responses of the kit. Only with `everyMethod` it changes requests other than POST. */
export function interceptingFetch(
  { request, response: change, everyMethod = false }: Interception,
  fetch: typeof globalThis.fetch,
): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const sent = {
      path: url.pathname,
      headers: { ...(init.headers as Record<string, string>) },
      body: String(init.body),
    };
    const isChanged = request !== undefined && (everyMethod || init.method === 'POST');
    if (isChanged) request(sent);
    url.pathname = decodeURI(sent.path);
    const changed = isChanged ? { ...init, headers: sent.headers } : init;
    const response = await fetch(url, isChanged && init.method === 'POST' ? { ...changed, body: sent.body } : changed);
    if (!change) return response;
    const { status, headers } = response;
    const intercepted = { path: url.pathname, status, headers: new Headers(headers), text: await response.text() };
    change(intercepted);
    const hasBody = ![204, 304].includes(intercepted.status);
    return new Response(hasBody ? intercepted.text : null, {
      status: intercepted.status,
      headers: intercepted.headers,
    });
  };
}
