import type { Service } from '@customer-authorization/service';
import { OpenApiDocument } from '@customer-authorization/service/testing-host';
import { OpenApiResponses, type OpenApiResponsesDocument } from './openapi-responses.js';

/** The running services, by the origins of their two ports. */
const services = new Map<string, { isManagement: boolean; responses: () => OpenApiResponses }>();
/** Responses that were compared with the document before. */
const validated = new WeakSet<Response>();

/**
 * Lets `validatedFetch` compare the responses of a service with its OpenAPI document. Returns a function that ends it.
 */
export function validateResponsesOf({ application }: Service, url: string, managementUrl: string): () => void {
  const document = application.get(OpenApiDocument);
  let compiled: OpenApiResponses | undefined;
  const responses = () => {
    compiled ??= new OpenApiResponses(document.build('management') as unknown as OpenApiResponsesDocument);
    return compiled;
  };
  services.set(url, { isManagement: false, responses });
  services.set(managementUrl, { isManagement: true, responses });
  return () => {
    services.delete(url);
    services.delete(managementUrl);
  };
}

/**
 * Sends a request as `fetch` does.
 *
 * @throws Error if the response does not match the OpenAPI document of the service that sent it
 */
export async function validatedFetch(
  fetch: typeof globalThis.fetch,
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(input, init);
  const url = new URL(input instanceof Request ? input.url : input);
  const service = services.get(url.origin);
  const method = (init?.method ?? 'GET').toLowerCase();
  if (!service || ['options', 'head'].includes(method) || validated.has(response)) return response;
  validated.add(response);
  const { status, headers } = response;
  const type = headers.get('content-type')?.split(';')[0] ?? '';
  const text = await response.clone().text();
  const { isManagement, responses } = service;
  const violation = responses().violationOf({ isManagement, method, path: url.pathname, status, type, text });
  if (violation) throw new Error(`${method} ${url.pathname} ${status}: ${violation}`);
  return response;
}
