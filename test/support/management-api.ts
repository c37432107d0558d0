import { request, type TestResponse, type TestService } from './test-service.js';

/** Sends a request to the management port. An object becomes JSON; a text is sent unchanged. */
export function manage(
  { managementUrl }: Pick<TestService, 'managementUrl'>,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | object,
): Promise<TestResponse> {
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  return request(managementUrl + path, { method, headers, ...(text !== undefined && { body: text }) });
}
