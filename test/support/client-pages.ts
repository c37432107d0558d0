import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Frame } from 'playwright-core';
import { anonymousRegistry } from './anonymous-grant.js';
import { BROWSER_NAME, launchProfile, type ThirdPartyCookies } from './browser-launch.js';
import { CustomerBrowsers } from './customer-browser.js';
import { scriptOf } from './guide-site.js';
import { type HttpsProxy, startHttpsProxy } from './https-proxy.js';
import { ACME, ACME_ORIGIN, ACME_SITE } from './test-registry.js';
import { startTestService, type TestService } from './test-service.js';

const SERVICE = 'https://auth.example';
const OWN_ORIGIN = 'https://www.auth.example';
const NEWS_PAGE = 'https://news.example/';

/**
 * Where a page lies, as a browser sees it: on the site of the service, on another one, or there in a frame of a third.
 */
export const SITUATIONS = ['same site', 'another site', 'frame'] as const;

export type Situation = (typeof SITUATIONS)[number];

/**
 * Where a browser that blocks third-party cookies has storage, but keeps no cookies without `Partitioned`. In a frame,
 * Firefox refuses the storage too.
 */
export const WITHOUT_COOKIES: Situation[] = BROWSER_NAME === 'firefox' ? ['another site'] : ['another site', 'frame'];

/** The fields of the client of the pages. */
export const OF_PAGES = { origins: [OWN_ORIGIN] };

/** A browser that opens the pages. */
export class ClientBrowser {
  constructor(readonly context: BrowserContext) {}

  /** Opens a tab. Resolves to the frame of the page that uses browser-client. */
  async open(situation: Situation): Promise<Frame> {
    const tab = await this.context.newPage();
    if (situation !== 'frame') {
      await tab.goto(situation === 'same site' ? `${OWN_ORIGIN}/` : `${ACME_ORIGIN}/`);
      return tab.mainFrame();
    }
    await tab.goto(NEWS_PAGE);
    await tab.evaluate(`new Promise((resolve) => {
      const frame = Object.assign(document.createElement('iframe'), { src: '${ACME_ORIGIN}/', onload: resolve });
      document.body.append(frame);
    })`);
    return tab.frames().find((frame) => frame.url() === `${ACME_ORIGIN}/`) as Frame;
  }
}

/** A browser with a profile in a folder, which outlasts a restart. */
class ClientProfile extends ClientBrowser {
  constructor(
    context: BrowserContext,
    readonly folder: string,
  ) {
    super(context);
  }
}

/** A service with pages that use browser-client, and browsers that open them. */
export class ClientPages {
  private readonly browsers = new CustomerBrowsers();
  private readonly openProfiles: ClientProfile[] = [];

  private constructor(
    readonly service: TestService,
    readonly front: HttpsProxy,
    private readonly profiles: string,
  ) {}

  /** @param profiles the folder of the profiles of the browsers */
  static async start(
    profiles: string,
    environment: Record<string, string>,
    registry = anonymousRegistry({}, OF_PAGES),
  ): Promise<ClientPages> {
    const service = await startTestService({ registry, environment: { AUTH_URL: SERVICE, ...environment } });
    const front = await startHttpsProxy('auth.example', service.url, {}, scriptOf);
    return new ClientPages(service, front, profiles);
  }

  /** A browser without cookies. Browsers with the same settings share a process, so that they start fast. */
  async openBrowser(thirdPartyCookies: ThirdPartyCookies = 'blocked'): Promise<ClientBrowser> {
    return new ClientBrowser(await this.browsers.newContext({ httpsPort: this.front.port, thirdPartyCookies }));
  }

  /** Starts a browser that a test restarts, by default with a new profile. */
  async startProfile(
    thirdPartyCookies: ThirdPartyCookies = 'blocked',
    folder = mkdtempSync(join(this.profiles, 'profile-')),
  ): Promise<ClientProfile> {
    const context = await launchProfile(folder, { httpsPort: this.front.port, thirdPartyCookies });
    const profile = new ClientProfile(context, folder);
    this.openProfiles.push(profile);
    return profile;
  }

  /** Ends a browser, and starts it with the same profile. */
  async restart({ context, folder }: ClientProfile, thirdPartyCookies?: ThirdPartyCookies): Promise<ClientProfile> {
    await context.close();
    return this.startProfile(thirdPartyCookies, folder);
  }

  /** Ends the browsers of a test; for `afterEach`. */
  async clear(): Promise<void> {
    await this.browsers.clear();
    await Promise.all(this.openProfiles.splice(0).map(({ context }) => context.close().catch(() => undefined)));
    this.service.clock.reset();
    this.front.seen.length = 0;
  }

  async stop(): Promise<void> {
    await this.clear();
    await this.browsers.stop();
    await this.front.stop();
    await this.service.stop();
  }
}

/**
 * Runs the body of an async function in a page. `tokens` is its token client with the fallback, `cookies` one without,
 * and `client` has the exports of browser-client.
 */
export function runIn<Result>(frame: Pick<Frame, 'evaluate'>, body: string): Promise<Result> {
  return frame.evaluate(`(async () => {
    const client = await import(new URL('/browser-client/index.js', location.href).href);
    const options = { url: '${SERVICE}', clientId: '${ACME_SITE}', organizationId: '${ACME}' };
    globalThis.cookies ??= new client.TokenClient(options);
    globalThis.tokens ??= new client.TokenClient({ ...options, withoutCookies: 'refresh_token' });
    const renewed = () => (tokens.discard(), tokens.entityId());
    const { cookies } = globalThis;
    ${body}
  })()`);
}

/** The customer of the next token of a page. */
export const renewedCustomerOf = (frame: Pick<Frame, 'evaluate'>): Promise<string> => runIn(frame, 'return renewed();');
