import type { Browser, BrowserContext, Cookie, Frame, Page } from 'playwright-core';
import { type BrowserLaunchOptions, launchBrowser } from './browser-launch.js';
import { TOKEN } from './cookie-grant.js';

/** The parts of a response that a script on a page can read. */
export interface PageFetchResult {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

/** The browser of a customer: a real browser with cookies of its own. */
export class CustomerBrowser {
  /** The tabs of `ask`, by the page that is open in them. A tab starts a process, so it serves further requests. */
  private readonly tabs = new Map<string, Page>();

  constructor(private readonly context: BrowserContext) {}

  /** Requests a token from the script of a page, as the SDK does: JSON as text/plain, with cookies. */
  async ask(page: string, body: object, path: string = TOKEN, type = 'text/plain'): Promise<PageFetchResult> {
    const tab = this.tabs.get(page) ?? (await this.goTo(page));
    this.tabs.set(page, tab);
    return askFrom(tab, body, path, type);
  }

  /** The value of `document.cookie` for the scripts of a page. */
  async cookiesOfScript(url: string): Promise<unknown> {
    return (await this.goTo(url)).evaluate('document.cookie');
  }

  async goTo(url: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(url);
    return page;
  }

  /** All cookies in the browser. */
  cookies(): Promise<Cookie[]> {
    return this.context.cookies();
  }
}

/** Browsers of customers. Those with the same options share a started browser. */
export class CustomerBrowsers {
  private readonly started = new Map<string, Browser>();

  /** A browser without cookies. */
  async open(options: BrowserLaunchOptions): Promise<CustomerBrowser> {
    return new CustomerBrowser(await this.newContext(options));
  }

  /** The windows of a browser without cookies. */
  async newContext(options: BrowserLaunchOptions): Promise<BrowserContext> {
    const key = JSON.stringify(options);
    const browser = this.started.get(key) ?? (await launchBrowser(options));
    this.started.set(key, browser);
    return browser.newContext({ ignoreHTTPSErrors: true });
  }

  /** Closes the browsers of a test; for `afterEach`. */
  async clear(): Promise<void> {
    const contexts = [...this.started.values()].flatMap((browser) => browser.contexts());
    await Promise.all(contexts.map((context) => context.close()));
  }

  /** Ends all started browsers; for `afterAll`. */
  async stop(): Promise<void> {
    await Promise.all([...this.started.values()].map((browser) => browser.close()));
  }
}

/** Sends a request from the script of a page or frame that is open. */
export function askFrom(
  page: Pick<Frame, 'evaluate'>,
  body: object,
  path: string = TOKEN,
  type = 'text/plain',
): Promise<PageFetchResult> {
  const request = { url: `https://auth.example${path}`, type, text: JSON.stringify(body) };
  return page.evaluate(async ({ url, type, text }) => {
    const headers = { 'Content-Type': type };
    const response = await fetch(url, { method: 'POST', credentials: 'include', headers, body: text });
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: (await response.json()) as Record<string, unknown>,
    };
  }, request);
}
