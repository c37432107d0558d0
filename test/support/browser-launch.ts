import { type Browser, type BrowserContext, chromium, firefox, type LaunchOptions } from 'playwright-core';

/** The browser that the vitest project tests: `chromium` or `firefox`. */
export const BROWSER_NAME = process.env.TEST_BROWSER === 'firefox' ? 'firefox' : 'chromium';

/**
 * Which third-party cookies the browser sends:
 * - `default`: those of a newly installed Firefox, which stores all of them per site of the page, and those of an
 *   incognito window of Chromium, which sends cookies with `Partitioned` only.
 * - `allowed`: all of them, to all sites.
 * - `blocked`: none, as a setting of the user. Chromium still sends cookies with `Partitioned`, as by default.
 */
export type ThirdPartyCookies = 'default' | 'allowed' | 'blocked';

export interface BrowserLaunchOptions {
  /**
   * The port of 127.0.0.1 to which the browser sends the https requests of all hosts. If omitted, it resolves hosts.
   */
  httpsPort?: number;
  thirdPartyCookies?: ThirdPartyCookies;
}

/** `network.cookie.cookieBehavior` of Firefox. */
const COOKIE_BEHAVIORS = { default: 5, allowed: 0, blocked: 1 };

/**
 * Replaces the list of playwright: what changes requests, their interception, and the window. Without partitions of the
 * storage, which playwright switches off, Chromium blocks no cookies.
 */
const DISABLED_FEATURES = [
  ...['AvoidCorsURLLoaderRestartOnRedirect', 'AvoidUnnecessaryBeforeUnloadCheckSync'],
  ...['BlockOriginHeaderModificationOnRedirect', 'PaintHolding'],
];

const browserType = BROWSER_NAME === 'firefox' ? firefox : chromium;
const optionsOf = BROWSER_NAME === 'firefox' ? firefoxOptions : chromiumOptions;

/** Starts the browser. Each `newContext({ ignoreHTTPSErrors: true })` has cookies of its own. */
export function launchBrowser(options: BrowserLaunchOptions = {}): Promise<Browser> {
  return browserType.launch(optionsOf(options));
}

/** Starts the browser with the profile in a folder. After `close`, the same folder continues with the same cookies. */
export function launchProfile(folder: string, options: BrowserLaunchOptions): Promise<BrowserContext> {
  return browserType.launchPersistentContext(folder, { ...optionsOf(options), ignoreHTTPSErrors: true });
}

function chromiumOptions({ httpsPort, thirdPartyCookies }: BrowserLaunchOptions): LaunchOptions {
  return {
    executablePath: process.env.TEST_CHROMIUM as string,
    chromiumSandbox: false, // Chromium has no sandbox for root, and the tests open only their own pages.
    args: [
      '--renderer-process-limit=1', // pages of one site share a process
      `--disable-features=${DISABLED_FEATURES.join()}`,
      ...(thirdPartyCookies === 'allowed' ? [] : ['--test-third-party-cookie-phaseout']),
      ...(httpsPort ? [`--host-resolver-rules=MAP * 127.0.0.1:${httpsPort}`] : []),
    ],
  };
}

function firefoxOptions({ httpsPort, thirdPartyCookies = 'default' }: BrowserLaunchOptions): LaunchOptions {
  const cookieBehavior = COOKIE_BEHAVIORS[thirdPartyCookies];
  return {
    channel: 'moz-firefox', // a Firefox as Mozilla builds it, by WebDriver BiDi
    executablePath: process.env.TEST_FIREFOX as string,
    firefoxUserPrefs: {
      'browser.contentblocking.features.standard': `-tp,tpPrivate,cookieBehavior${cookieBehavior},-cm,-fp`,
      'network.cookie.cookieBehavior': cookieBehavior,
      ...(httpsPort && {
        'network.dns.forceResolve': '127.0.0.1',
        'network.socket.forcePort': `443=${httpsPort}`,
      }),
    },
  };
}
