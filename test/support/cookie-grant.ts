import { cookieBody, TOKEN } from './cookie-body.js';
import type { Answer, Caller } from './service.js';

export { cookieBody, TOKEN };

/** The `Cookie` header by which a browser shows the cookies that an answer has set. */
export function cookieHeader({ cookies }: Answer): string {
  return cookies.map((line) => line.split(';')[0]).join('; ');
}

/** A browser: keeps the cookies of each answer and shows them with the next request. */
export class TestBrowser {
  cookie: string | undefined;

  constructor(private readonly service: Caller) {}

  async visit(body: object = {}, path: string = TOKEN, headers: Record<string, string> = {}): Promise<Answer> {
    const shown = this.cookie === undefined ? {} : { cookie: this.cookie };
    const answer = await this.service.post(path, cookieBody(body), { ...shown, ...headers });
    if (answer.cookies.length > 0) this.cookie = cookieHeader(answer);
    return answer;
  }
}
