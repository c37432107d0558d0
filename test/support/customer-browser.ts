import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, type Cookie, chromium, type Page } from 'playwright-core';
import { TOKEN } from './cookie-grant.js';

/** What a script on a page learns of an answer. */
export interface PageAnswer {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export interface BrowserOptions {
  /** The port that every https address leads to. */
  port: number;
  /** Whether cookies reach an address that is not the page's own site; browsers more and more say no. */
  thirdPartyCookies?: boolean;
}

/** What Chromium's settings call the two; a context that Playwright makes would always block, as incognito windows do. */
const COOKIE_CONTROLS = { allowed: 0, blocked: 1 };

/** A customer's browser: a real Chromium with a profile of its own. */
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

  /** Opens a page and asks from there for a token, as the protocol's SDK does: JSON as text/plain, with cookies. */
  async ask(page: string, body: object | string, path: string = TOKEN, type = 'text/plain'): Promise<PageAnswer> {
    const opened = await this.goTo(page);
    const request = { url: `https://auth.example${path}`, type, text: asText(body) };
    try {
      return await opened.evaluate(async ({ url, type, text }) => {
        const headers = { 'Content-Type': type };
        const answer = await fetch(url, { method: 'POST', credentials: 'include', headers, body: text });
        return {
          status: answer.status,
          headers: Object.fromEntries(answer.headers),
          body: (await answer.json()) as Record<string, unknown>,
        };
      }, request);
    } finally {
      await opened.close();
    }
  }

  /** What `document.cookie` is to the scripts of an address. */
  async cookiesOfScript(address: string): Promise<unknown> {
    return (await this.goTo(address)).evaluate('document.cookie');
  }

  async goTo(address: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(address);
    return page;
  }

  /** Everything in the browser's cookie jar. */
  cookies(): Promise<Cookie[]> {
    return this.context.cookies();
  }

  /** Quits, and starts again on the same profile. */
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
    chromiumSandbox: false, // there is none for root, and the pages are ours
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
