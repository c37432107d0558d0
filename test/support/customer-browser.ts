import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Cookie, Frame, Page } from 'playwright-core';
import { BROWSER_NAME, type BrowserLaunchOptions, launchProfile } from './browser-launch.js';
import { TOKEN } from './cookie-grant.js';

/** The parts of a response that a script on a page can read. */
export interface PageFetchResult {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

/** The browser of a customer: a real browser with its own profile. */
export class CustomerBrowser {
  /** The tabs of `ask`, by the page that is open in them. A tab starts a process, so it serves further requests. */
  private readonly tabs = new Map<string, Page>();

  private constructor(
    private readonly profile: string,
    private readonly options: BrowserLaunchOptions,
    private context: BrowserContext,
  ) {}

  static async open(options: BrowserLaunchOptions): Promise<CustomerBrowser> {
    const profile = mkdtempSync(join(tmpdir(), `${BROWSER_NAME}-`));
    return new CustomerBrowser(profile, options, await launchProfile(profile, options));
  }

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

  /** Opens a page in the first tab, which stays open until the browser ends. */
  async goToInFirstTab(url: string): Promise<Page> {
    const [first] = this.context.pages() as [Page, ...Page[]];
    if (first.url() !== url) await first.goto(url);
    return first;
  }

  /** All cookies in the browser. */
  cookies(): Promise<Cookie[]> {
    return this.context.cookies();
  }

  /** Restarts the browser on the same profile. */
  async restart(): Promise<void> {
    this.tabs.clear();
    await this.context.close();
    this.context = await launchProfile(this.profile, this.options);
  }

  /** Deletes the cookies and closes the pages. */
  async clear(): Promise<void> {
    this.tabs.clear();
    const [, ...opened] = this.context.pages(); // the browser ends with its first page
    for (const page of opened) await page.close();
    await this.context.clearCookies();
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Browsers that are cleared after a test and used again in the next, because the start of a browser takes seconds. */
export class CustomerBrowserPool {
  private readonly idle = new Map<string, CustomerBrowser[]>();
  private used: [key: string, CustomerBrowser][] = [];

  /** A browser without cookies. */
  async open(options: BrowserLaunchOptions): Promise<CustomerBrowser> {
    const key = JSON.stringify(options);
    const browser = this.idle.get(key)?.pop() ?? (await CustomerBrowser.open(options));
    this.used.push([key, browser]);
    return browser;
  }

  /** Ends the use of all browsers; for `afterEach`. A browser that cannot be cleared is closed. */
  async release(): Promise<void> {
    const clear = async ([key, browser]: [string, CustomerBrowser]) => {
      try {
        await browser.clear();
      } catch (error) {
        await browser.close();
        throw error;
      }
      this.idle.set(key, [...(this.idle.get(key) ?? []), browser]);
    };
    await Promise.all(this.used.splice(0).map(clear));
  }

  /** Ends all browsers; for `afterAll`. */
  async close(): Promise<void> {
    const browsers = [...this.idle.values()].flat();
    this.idle.clear();
    await Promise.all(browsers.map((browser) => browser.close()));
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
