import { ACME, ACME_SITE } from './test-registry.js';
import type { HttpClient, TestResponse } from './test-service.js';

export const TOKEN = '/v2/customer/token';

/** The parameters of a cookie grant (protocol §4.1). */
export function cookieBody(more: object = {}): object {
  return { grant_type: 'cookie', client_id: ACME_SITE, response_type: 'token', organization_id: ACME, ...more };
}

/** The `Cookie` header by which a browser shows the cookies that an answer has set. */
export function cookieHeader({ cookies }: TestResponse): string {
  return cookies.map((line) => line.split(';')[0]).join('; ');
}

/** A browser: keeps the cookies of each answer and shows them with the next request. */
export class TestBrowser {
  cookie: string | undefined;

  constructor(private readonly service: HttpClient) {}

  async visit(body: object = {}, path: string = TOKEN, headers: Record<string, string> = {}): Promise<TestResponse> {
    const shown = this.cookie === undefined ? {} : { cookie: this.cookie };
    const answer = await this.service.post(path, cookieBody(body), { ...shown, ...headers });
    if (answer.cookies.length > 0) this.cookie = cookieHeader(answer);
    return answer;
  }
}
