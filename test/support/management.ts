import { type Answer, request, type TestService } from './service.js';

/** The header by which a client or resource server shows its secret (RFC 6749 section 2.3.1). */
export function basic(id: string, secret: string): { authorization: string } {
  const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** Asks the management port; a text as it is, an object as JSON. */
export function manage(
  { managementUrl }: Pick<TestService, 'managementUrl'>,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | object,
): Promise<Answer> {
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  return request(managementUrl + path, { method, headers, ...(text !== undefined && { body: text }) });
}
