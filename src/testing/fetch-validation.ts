import type { Service } from '../bootstrap.js';
import { OpenApiDocument } from '../openapi/openapi-document.js';
import { OpenApiResponses, type OpenApiResponsesDocument } from './openapi-responses.js';

/** The services that run, by the origins that they answer at. */
const services = new Map<string, { isManagement: boolean; answers: () => OpenApiResponses }>();
let isChecking = false;

/** From now on every answer of this service, to whatever a test sends, is held against its OpenAPI document. */
export function validateFetchOf({ application }: Service, url: string, managementUrl: string): void {
  if (!isChecking) globalThis.fetch = checked(globalThis.fetch);
  isChecking = true;
  const document = application.get(OpenApiDocument);
  let made: OpenApiResponses | undefined;
  const answers = () => {
    made ??= new OpenApiResponses(document.read() as unknown as OpenApiResponsesDocument);
    return made;
  };
  services.set(url, { isManagement: false, answers });
  services.set(managementUrl, { isManagement: true, answers });
}

function checked(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const url = new URL(input instanceof Request ? input.url : input);
    const service = services.get(url.origin);
    const method = (init?.method ?? 'GET').toLowerCase();
    if (!service || ['options', 'head'].includes(method)) return response;
    const { status, headers } = response;
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    const text = await response.clone().text();
    const { isManagement, answers } = service;
    const fault = answers().violationOf({ isManagement, method, path: url.pathname, status, type, text });
    if (fault) throw new Error(`${method} ${url.pathname} ${status}: ${fault}`);
    return response;
  };
}
