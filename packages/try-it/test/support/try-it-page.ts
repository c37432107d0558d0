import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { freePort } from '../../../../scripts/free-port.js';
import { launchBrowser } from '../../../../test/support/browser-launch.js';
import { startTestService, type TestService } from '../../../../test/support/test-service.js';
import { demoEntries } from '../../src/demo-registry.js';
import { TryItModule } from '../../src/try-it.module.js';

/** The browser logs each 4xx response. Firefox also reports that the sign-in page allows no icon. */
const EXPECTED_PROBLEM = /status of 4\d\d|favicon\.ico/;

/** A service with the try-it page and the limits of production, and browsers that visit the page. */
export class TryItSite {
  /** What no page may do: console errors, script errors, and requests to other hosts. */
  readonly problems: string[] = [];

  private constructor(
    readonly url: string,
    readonly service: TestService,
    readonly agent: { email: string; password: string },
    private readonly browser: Browser,
  ) {}

  static async start(): Promise<TryItSite> {
    const port = String(await freePort());
    const url = `http://localhost:${port}`;
    const registry = demoEntries(url);
    const environment = { TRY_IT: 'true', AUTH_URL: url, PORT: port, RATE_LIMIT: '' };
    const service = await startTestService({ modules: [TryItModule], registry, environment });
    const browser = await launchBrowser();
    return new TryItSite(url, service, registry.agents[0] as { email: string; password: string }, browser);
  }

  /** Opens a page in a browser with cookies of its own. */
  async open(path = '/try', options: BrowserContextOptions = {}): Promise<Page> {
    const page = await (await this.browser.newContext(options)).newPage();
    page.on('pageerror', ({ message }) => this.addProblem(message));
    page.on('console', (message) => {
      if (message.type() === 'error') this.addProblem(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(`${this.url}/`)) this.problems.push(request.url());
    });
    await page.goto(this.url + path);
    return page;
  }

  private addProblem(message: string): void {
    if (!EXPECTED_PROBLEM.test(message)) this.problems.push(message);
  }

  async closePages(): Promise<void> {
    for (const context of this.browser.contexts()) await context.close();
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.service.stop();
  }
}

/** The result of a step, when the page shows one. */
export async function resultOf(page: Page, step: string): Promise<string> {
  return page.locator(`#${step}-result p`).innerText();
}

/** Clicks a button of a step, and returns the result that replaces the earlier one. */
export async function clickIn(page: Page, step: string, button: string): Promise<string> {
  await page.evaluate(`document.getElementById('${step}-result').replaceChildren()`);
  await page.getByRole('button', { name: button, exact: true }).click();
  return resultOf(page, step);
}

/** The id of the customer that a result names first. */
export function customerIn(result: string): string {
  return /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(result)?.[0] ?? `no customer in: ${result}`;
}

/** Records the requests of a page to the service, without those of its own files. */
export function recordRequests(page: Page): string[] {
  const sent: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.startsWith('/try/files/')) sent.push(`${request.method()} ${pathname}`);
  });
  return sent;
}

/** The site of a test file or `describe`. After each test, its pages close, and no page may have caused a problem. */
export function tryItSite(): { current: TryItSite } {
  const site = {} as { current: TryItSite };
  beforeAll(async () => {
    site.current = await TryItSite.start();
  });
  afterEach(async () => {
    await site.current.closePages();
    expect(site.current.problems.splice(0)).toEqual([]);
  });
  afterAll(() => site.current?.stop());
  return site;
}
