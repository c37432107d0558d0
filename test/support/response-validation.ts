import { replaceMethod } from '../../packages/conformance-kit/src/replace-method.js';
import { OpenApiDocument } from '../../src/discovery/openapi/openapi-document.js';
import type { Service } from '../../src/public/service.js';
import { OpenApiResponses, type OpenApiResponsesDocument } from './openapi-responses.js';

/** The running services, by the origins of their two ports. */
const services = new Map<string, { isManagement: boolean; responses: () => OpenApiResponses }>();
let restoreFetch: () => void = () => undefined;

/**
 * Lets `fetch` compare the responses of a service with its OpenAPI document. Returns a function that ends it.
 */
export function validateResponsesOf({ application }: Service, url: string, managementUrl: string): () => void {
  const document = application.get(OpenApiDocument);
  let compiled: OpenApiResponses | undefined;
  const responses = () => {
    compiled ??= new OpenApiResponses(document.build('management') as unknown as OpenApiResponsesDocument);
    return compiled;
  };
  if (services.size === 0) restoreFetch = replaceMethod(globalThis, 'fetch', validated);
  services.set(url, { isManagement: false, responses });
  services.set(managementUrl, { isManagement: true, responses });
  return () => {
    services.delete(url);
    services.delete(managementUrl);
    if (services.size === 0) restoreFetch();
  };
}

/** `fetch`, which fails if the response does not match the OpenAPI document of the service that sent it. */
function validated(fetch: (...parameters: Parameters<typeof globalThis.fetch>) => unknown) {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = (await fetch(input, init)) as Response;
    const url = new URL(input instanceof Request ? input.url : input);
    const service = services.get(url.origin);
    const method = (init?.method ?? 'GET').toLowerCase();
    if (!service || ['options', 'head'].includes(method)) return response;
    const { status, headers } = response;
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    const text = await response.clone().text();
    const { isManagement, responses } = service;
    const violation = responses().violationOf({ isManagement, method, path: url.pathname, status, type, text });
    if (violation) throw new Error(`${method} ${url.pathname} ${status}: ${violation}`);
    return response;
  };
}
