import type { Service } from '../bootstrap.js';
import { OpenApiDocument } from '../openapi/openapi-document.js';
import { OpenApiResponses, type OpenApiResponsesDocument } from './openapi-responses.js';
import { SharedPatch } from './shared-patch.js';

/** The running services, by the origins of their two ports. */
const services = new Map<string, { isManagement: boolean; responses: () => OpenApiResponses }>();
const patch = new SharedPatch(globalThis, 'fetch', (fetch) => validated(fetch as typeof globalThis.fetch));

/**
 * Checks every response that `fetch` gets from a service against the service's OpenAPI document. Returns a function
 * that ends the checks. `fetch` is the original again after the checks of the last service have ended.
 */
export function validateFetchOf({ application }: Service, url: string, managementUrl: string): () => void {
  const document = application.get(OpenApiDocument);
  let compiled: OpenApiResponses | undefined;
  const responses = () => {
    compiled ??= new OpenApiResponses(document.read() as unknown as OpenApiResponsesDocument);
    return compiled;
  };
  services.set(url, { isManagement: false, responses });
  services.set(managementUrl, { isManagement: true, responses });
  const release = patch.acquire();
  return () => {
    services.delete(url);
    services.delete(managementUrl);
    release();
  };
}

function validated(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const url = new URL(input instanceof Request ? input.url : input);
    const service = services.get(url.origin);
    const method = (init?.method ?? 'GET').toLowerCase();
    if (!service || ['options', 'head'].includes(method)) return response;
    const { status, headers } = response;
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    const text = await response.clone().text();
    const { isManagement, responses } = service;
    const received = { isManagement, method, path: url.pathname, status, type, text };
    const violation = responses().violationOf(received);
    if (violation) throw new Error(`${method} ${url.pathname} ${status}: ${violation}`);
    return response;
  };
}
