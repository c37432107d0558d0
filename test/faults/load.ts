import { setTimeout as sleep } from 'node:timers/promises';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { INFO, redeemBody, TRANSFER, transferBody } from '../support/transfers.js';
import type { Call } from './history.js';

/** Milliseconds after which a caller gives up: long enough that a broken promise is seen, and not taken for a lost answer. */
const PATIENCE = 15_000;
const PAUSE = 5;

interface Told {
  status: number | undefined;
  cookies: string;
  // biome-ignore lint/suspicious/noExplicitAny: the answers of a service
  body: any;
}

/** Callers that do without a pause what customers do, and write down everything. Each has its browsers, codes and tokens. */
export class Load {
  readonly history: Call[] = [];
  private readonly callers: Promise<void>[];
  private stopping = false;
  private next = 0;

  /** @param urls the processes of the service, asked in turn */
  constructor(
    private readonly urls: () => string[],
    callers: number,
  ) {
    this.callers = Array.from({ length: callers }, () => this.live());
  }

  /** Lets every caller finish what it is at. */
  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.callers);
  }

  /** Asks once more for every browser that was ever given. */
  async visitAll(): Promise<number> {
    const browsers = this.history.flatMap(({ kind, status, browser }) =>
      kind === 'new' && status === 200 && browser ? [browser] : [],
    );
    while (browsers.length > 0) await Promise.all(browsers.splice(0, 50).map((browser) => this.comeBack(browser)));
    return this.history.filter(({ kind, status }) => kind === 'new' && status === 200).length;
  }

  private async live(): Promise<void> {
    while (!this.stopping) {
      const made = await this.tell({ kind: 'new' }, 'POST', TOKEN, {}, cookieBody());
      if (made.status !== 200) await sleep(PAUSE);
      else await this.beCustomer(made.cookies, made.body.access_token, made.body.entity_id);
    }
  }

  private async beCustomer(browser: string, token: string, entityId: string): Promise<void> {
    await this.comeBack(browser);
    const asked = { kind: 'transfer', entityId } as const;
    const { status, body } = await this.tell(asked, 'POST', TRANSFER, bearer(token), transferBody());
    if (status === 200) await this.race(body.identity_transfer_token);
    await this.comeBack(browser);
    await this.tell({ kind: 'info', token }, 'GET', INFO, bearer(token));
  }

  /** Several exchange one code; a token that one of them gets is used, and ended. */
  private async race(code: string): Promise<void> {
    const exchange = () => this.tell({ kind: 'exchange', code }, 'POST', TOKEN, {}, redeemBody(code));
    const [won] = (await Promise.all([exchange(), exchange(), exchange()])).filter(({ status }) => status === 200);
    if (!won) return;
    const token = won.body.access_token;
    await this.tell({ kind: 'info', token }, 'GET', INFO, bearer(token));
    await this.tell({ kind: 'end', token }, 'DELETE', TOKEN, bearer(token));
    await this.tell({ kind: 'info', token }, 'GET', INFO, bearer(token));
  }

  private async comeBack(browser: string): Promise<void> {
    await this.tell({ kind: 'return', browser }, 'POST', TOKEN, { cookie: browser }, cookieBody());
  }

  private async tell(
    about: Pick<Call, 'kind'> & Partial<Call>,
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: object,
  ): Promise<Told> {
    const urls = this.urls();
    const url = urls[this.next++ % urls.length] as string;
    const begun = performance.now();
    const told = await ask(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const entityId = told.body?.entity_id;
    this.history.push({
      begun,
      ended: performance.now(),
      status: told.status,
      ...(entityId && { entityId }),
      ...(told.body?.identity_transfer_token && { code: told.body.identity_transfer_token }),
      ...(about.kind === 'new' && { browser: told.cookies }),
      ...about,
    });
    return told;
  }
}

async function ask(url: string, init: RequestInit): Promise<Told> {
  try {
    const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(PATIENCE) });
    const cookies = answer.headers.getSetCookie().map((line) => line.split(';')[0]);
    return { status: answer.status, cookies: cookies.join('; '), body: await answer.json() };
  } catch {
    return { status: undefined, cookies: '', body: undefined };
  }
}
