import { ACME, ACME_SITE } from './test-registry.js';
import type { HttpClient, TestResponse } from './test-service.js';

export const TOKEN = '/v2/customer/token';

/** The parameters of a cookie grant (protocol §4.1). */
export function cookieBody(more: object = {}): object {
  return { grant_type: 'cookie', client_id: ACME_SITE, response_type: 'token', organization_id: ACME, ...more };
}

/** The `Cookie` header with the cookies that a response has set. */
export function cookieHeader({ cookies }: TestResponse): string {
  return cookies.map((line) => line.split(';')[0]).join('; ');
}

/** A browser. It stores the cookies of each response and sends them with the next request. */
export class TestBrowser {
  cookie: string | undefined;

  constructor(private readonly service: HttpClient) {}

  async visit(body: object = {}, path: string = TOKEN, headers: Record<string, string> = {}): Promise<TestResponse> {
    const cookieHeaders = this.cookie === undefined ? {} : { cookie: this.cookie };
    const response = await this.service.post(path, cookieBody(body), { ...cookieHeaders, ...headers });
    if (response.cookies.length > 0) this.cookie = cookieHeader(response);
    return response;
  }
}
