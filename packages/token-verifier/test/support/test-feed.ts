import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

const ENTRIES_PER_PAGE = 1_000;

/** The revocation feed of the test's issuer. A cursor is the number of entries before it. */
export class TestFeed {
  readonly requests: { url: URL; authorization: string | undefined; form: Record<string, string> }[] = [];
  /** Replaces the responses of the feed. */
  handler: RequestListener | undefined;
  private entries: object[] = [];
  private generation = 1;
  private waiting: (() => void)[] = [];

  /** Adds an entry, and ends the requests that wait for one. */
  add(...entries: object[]): void {
    for (const entry of entries) this.entries.push({ expires_at: '2027-02-01T00:00:00.000Z', ...entry });
    for (const respond of this.waiting.splice(0)) respond();
  }

  /** The feed does not know its cursors any more, and has other entries. */
  replaceBy(...entries: object[]): void {
    this.generation += 1;
    this.entries = [];
    this.add(...entries);
  }

  get lastRequest(): URL | undefined {
    return this.requests.at(-1)?.url;
  }

  async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://feed.test');
    const form = new URLSearchParams(request.method === 'POST' ? await text(request) : '');
    this.requests.push({ url, authorization: request.headers.authorization, form: Object.fromEntries(form) });
    if (this.handler) return void this.handler(request, response);
    const parameters = request.method === 'POST' ? form : url.searchParams;
    const [generation, start] = (parameters.get('after') ?? `${this.generation}.0`).split('.').map(Number);
    if (generation !== this.generation) return void response.writeHead(400).end('{"error":"invalid_request"}');
    const send = () => {
      if (generation === this.generation) this.sendPage(response, Number(start));
      else response.destroy();
    };
    if (Number(start) < this.entries.length || !parameters.has('wait')) return send();
    const timer = setTimeout(send, Number(parameters.get('wait')) * 1000);
    response.on('close', () => clearTimeout(timer));
    this.waiting.push(send);
  }

  private sendPage(response: ServerResponse, start: number): void {
    if (response.writableEnded) return;
    const revocations = this.entries.slice(start, start + ENTRIES_PER_PAGE);
    const end = start + revocations.length;
    const page = { revocations, cursor: `${this.generation}.${end}`, complete: end === this.entries.length };
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(page));
  }
}
