import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, type Cookie, chromium, type Page } from 'playwright-core';
import { TOKEN } from './cookie-grant.js';

/** The parts of a response that a script on a page can read. */
export interface PageFetchResult {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export interface BrowserOptions {
  /** The port to which the browser sends all https requests. */
  port: number;
  /** Whether the browser sends third-party cookies. More and more browsers block them. */
  thirdPartyCookies?: boolean;
}

/** Values of a Chromium setting. A default Playwright context always blocks, as incognito windows do. */
const COOKIE_CONTROLS = { allowed: 0, blocked: 1 };

/** The browser of a customer: a real Chromium with its own profile. */
export class CustomerBrowser {
  private constructor(
    private readonly profile: string,
    private readonly options: BrowserOptions,
    private context: BrowserContext,
  ) {}

  static async open(options: BrowserOptions): Promise<CustomerBrowser> {
    const profile = mkdtempSync(join(tmpdir(), 'chromium-'));
    mkdirSync(join(profile, 'Default'));
    const mode = options.thirdPartyCookies === false ? COOKIE_CONTROLS.blocked : COOKIE_CONTROLS.allowed;
    const preferences = { profile: { cookie_controls_mode: mode } };
    writeFileSync(join(profile, 'Default', 'Preferences'), JSON.stringify(preferences));
    return new CustomerBrowser(profile, options, await launch(profile, options));
  }

  /** Opens a page and requests a token from its script, as the SDK does: JSON as text/plain, with cookies. */
  async ask(page: string, body: object | string, path: string = TOKEN, type = 'text/plain'): Promise<PageFetchResult> {
    const tab = await this.goTo(page);
    const request = { url: `https://auth.example${path}`, type, text: asText(body) };
    try {
      return await tab.evaluate(async ({ url, type, text }) => {
        const headers = { 'Content-Type': type };
        const response = await fetch(url, { method: 'POST', credentials: 'include', headers, body: text });
        return {
          status: response.status,
          headers: Object.fromEntries(response.headers),
          body: (await response.json()) as Record<string, unknown>,
        };
      }, request);
    } finally {
      await tab.close();
    }
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

  /** Restarts the browser on the same profile. */
  async restart(): Promise<void> {
    await this.context.close();
    this.context = await launch(this.profile, this.options);
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
}

function launch(profile: string, { port }: BrowserOptions): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile, {
    executablePath: process.env.TEST_CHROMIUM as string,
    headless: true,
    chromiumSandbox: false, // Chromium has no sandbox for root, and the tests open only their own pages.
    ignoreHTTPSErrors: true,
    args: [
      ...['--disable-gpu', '--disable-quic', '--disable-sync', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update'],
      `--host-resolver-rules=MAP * 127.0.0.1:${port}`,
    ],
  });
}

function asText(body: object | string): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}
