/** Sends requests to the public port of a service. */
export interface HttpClient {
  url: string;
  /** Sends a POST request, with an object as JSON, and a text unchanged. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<TestResponse>;
  send(method: string, path: string, headers?: Record<string, string>): Promise<TestResponse>;
}

/** A response of the service under test, with its body as text and, if it is JSON, parsed. */
export interface TestResponse {
  status: number;
  headers: Headers;
  /** The values of the `Set-Cookie` headers. */
  cookies: string[];
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field of it
  body: any;
}

export function httpClientOf(url: string): HttpClient {
  return {
    url,
    post: (path, body, headers = {}) =>
      request(url + path, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) }),
    send: (method, path, headers = {}) => request(url + path, { method, headers }),
  };
}

export async function request(url: string, init: RequestInit): Promise<TestResponse> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
  return {
    status: response.status,
    headers: response.headers,
    cookies: response.headers.getSetCookie(),
    text,
    body: isJson ? JSON.parse(text) : undefined,
  };
}
