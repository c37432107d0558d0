import { setTimeout as sleep } from 'node:timers/promises';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { INFO, redeemBody, TRANSFER, transferBody } from '../support/transfers.js';
import type { Call } from './history.js';

/** The timeout of a caller. It exceeds the guaranteed wait, so that a slow response is not counted as a lost one. */
const CALLER_TIMEOUT_MS = 15_000;
const RETRY_PAUSE_MS = 5;

interface CallResult {
  status: number | undefined;
  cookies: string;
  // biome-ignore lint/suspicious/noExplicitAny: a response of the service has any shape
  body: any;
}

/** Callers that act as customers without a pause and record every call. Each has its own browsers, codes and tokens. */
export class Load {
  readonly history: Call[] = [];
  private readonly callers: Promise<void>[];
  private stopping = false;
  private next = 0;

  /** @param urls the processes of the service, which the callers use in turn */
  constructor(
    private readonly urls: () => string[],
    callers: number,
  ) {
    this.callers = Array.from({ length: callers }, () => this.runCaller());
  }

  /** Waits until every caller has finished its current sequence. */
  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.callers);
  }

  /** Sends one more request from every browser that became a customer. Returns the number of customers. */
  async visitAll(): Promise<number> {
    const browsers = this.history.flatMap(({ kind, status, browser }) =>
      kind === 'new' && status === 200 && browser ? [browser] : [],
    );
    while (browsers.length > 0) await Promise.all(browsers.splice(0, 50).map((browser) => this.returnOf(browser)));
    return this.history.filter(({ kind, status }) => kind === 'new' && status === 200).length;
  }

  private async runCaller(): Promise<void> {
    while (!this.stopping) {
      const made = await this.call({ kind: 'new' }, 'POST', TOKEN, {}, cookieBody());
      if (made.status !== 200) await sleep(RETRY_PAUSE_MS);
      else await this.beCustomer(made.cookies, made.body.access_token, made.body.entity_id);
    }
  }

  private async beCustomer(browser: string, token: string, entityId: string): Promise<void> {
    await this.returnOf(browser);
    const transfer = { kind: 'transfer', entityId } as const;
    const { status, body } = await this.call(transfer, 'POST', TRANSFER, bearer(token), transferBody());
    if (status === 200) await this.race(body.identity_transfer_token);
    await this.returnOf(browser);
    await this.call({ kind: 'info', token }, 'GET', INFO, bearer(token));
  }

  /** Redeems one code with three concurrent requests. Uses and revokes the token. */
  private async race(code: string): Promise<void> {
    const exchange = () => this.call({ kind: 'exchange', code }, 'POST', TOKEN, {}, redeemBody(code));
    const [won] = (await Promise.all([exchange(), exchange(), exchange()])).filter(({ status }) => status === 200);
    if (!won) return;
    const token = won.body.access_token;
    await this.call({ kind: 'info', token }, 'GET', INFO, bearer(token));
    await this.call({ kind: 'end', token }, 'DELETE', TOKEN, bearer(token));
    await this.call({ kind: 'info', token }, 'GET', INFO, bearer(token));
  }

  private async returnOf(browser: string): Promise<void> {
    await this.call({ kind: 'return', browser }, 'POST', TOKEN, { cookie: browser }, cookieBody());
  }

  private async call(
    about: Pick<Call, 'kind'> & Partial<Call>,
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: object,
  ): Promise<CallResult> {
    const urls = this.urls();
    const url = urls[this.next++ % urls.length] as string;
    const begun = performance.now();
    const result = await request(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const entityId = result.body?.entity_id;
    this.history.push({
      url,
      begun,
      ended: performance.now(),
      status: result.status,
      ...(entityId && { entityId }),
      ...(result.body?.identity_transfer_token && { code: result.body.identity_transfer_token }),
      ...(about.kind === 'new' && { browser: result.cookies }),
      ...about,
    });
    return result;
  }
}

async function request(url: string, init: RequestInit): Promise<CallResult> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(CALLER_TIMEOUT_MS) });
    const cookies = response.headers.getSetCookie().map((line) => line.split(';')[0]);
    return { status: response.status, cookies: cookies.join('; '), body: await response.json() };
  } catch {
    return { status: undefined, cookies: '', body: undefined };
  }
}
