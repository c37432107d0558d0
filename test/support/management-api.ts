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

/** The value of a metric, which is named with its labels. */
export async function metricOf(service: Pick<TestService, 'managementUrl'>, name: string): Promise<number> {
  const { text } = await manage(service, 'GET', '/metrics');
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1));
}
