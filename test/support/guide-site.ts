import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from './browser-launch.js';
import { type HttpsProxy, startHttpsProxy } from './https-proxy.js';
import { read } from './project-files.js';
import { ACME_PAGE, ACME_SITE, testRegistry } from './test-registry.js';
import { startTestService, type TestService } from './test-service.js';

const CLIENT = '/browser-client/';
const DEMO_CLIENT = '9cbf3a968289727cb3cdfe83ab1d9836';
const SERVICE = 'https://auth.example';
const OPTIONS = { ignoreHTTPSErrors: true };

/** A file of examples/integrating/browser, for a service and a client of a test. */
export const guideFile = (name: string, url: string): string =>
  read(`examples/integrating/browser/${name}`).replace('http://localhost:3000', url).replace(DEMO_CLIENT, ACME_SITE);

/** The script at a path of a page: a file of the built package browser-client, or of examples/integrating/browser. */
export function scriptOf(path: string): string | undefined {
  if (!path.endsWith('.js')) return undefined;
  const name = path.split('/').at(-1) as string;
  return path.includes(CLIENT)
    ? read(`packages/browser-client/dist/${name}`)
    : guideFile(name, SERVICE).replaceAll("'@customer-authorization/browser-client'", `'.${CLIENT}index.js'`);
}

/** Pages of another site than the service, with the package browser-client and examples/integrating/browser. */
export class GuideSite {
  private constructor(
    readonly service: TestService,
    readonly front: HttpsProxy,
    private readonly browser: Browser,
    private context: BrowserContext,
  ) {}

  static async start(registry = testRegistry()): Promise<GuideSite> {
    const service = await startTestService({ registry });
    const front = await startHttpsProxy('auth.example', service.url, {}, scriptOf);
    const browser = await launchBrowser({ httpsPort: front.port });
    return new GuideSite(service, front, browser, await browser.newContext(OPTIONS));
  }

  async openPage(url = ACME_PAGE): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(url);
    return page;
  }

  /** Empties the browser, as on another device, and resets the clock and the list of requests. */
  async clear(): Promise<void> {
    await this.context.close();
    this.context = await this.browser.newContext(OPTIONS);
    this.service.clock.reset();
    this.front.seen.length = 0;
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.front.stop();
    await this.service.stop();
  }
}

/** Runs the body of an async function in a page. The exports of the files are variables, and `SERVICE` is the URL. */
export function runInPage<Result>(tab: Page, body: string): Promise<Result> {
  return tab.evaluate(`(async () => {
    const SERVICE = '${SERVICE}';
    const names = ['chat.js', 'groups.js', 'browser-client/index.js'];
    const modules = await Promise.all(names.map((name) => import(new URL(name, location.href))));
    const { tokens, groups, logOutOfAllGroups, leaveThisBrowser, ...exports } = Object.assign({}, ...modules);
    const { logOutEverywhere, logOutMovedDevices, endToken, signIn, resumeSignIn, signOut } = exports;
    const customer = async (client = tokens) =>
      (await (await client.fetch(SERVICE + '/v2/customer/info')).json()).entity_id;
    ${body}
  })()`);
}

/** The id of the customer whose token the page has. */
export const customerOf = (tab: Page): Promise<string> => runInPage(tab, 'return customer();');
