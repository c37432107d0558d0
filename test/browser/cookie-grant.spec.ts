import { join } from 'node:path';
import type { Frame } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { BROWSER_NAME, launchProfile, type ThirdPartyCookies } from '../support/browser-launch.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { askFrom, CustomerBrowser, CustomerBrowsers } from '../support/customer-browser.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import { identitiesOf } from '../support/identities.js';
import { temporaryFolder } from '../support/project-files.js';
import { moveOf, rememberingRegistry } from '../support/remember.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_SITE,
} from '../support/test-registry.js';
import type { TestService } from '../support/test-service.js';
import { redeemBody } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const RIVAL_PAGE = 'https://rival.example/';
const PUBLIC_PAGE = `${PUBLIC_ORIGIN}/`;
const NEWS_PAGE = 'https://news.example/';
const EVIL_PAGE = 'https://evil.example/';
const FORGET = '/v2/customer/forget';
const FORGET_BODY = { client_id: ACME_SITE, organization_id: ACME };

/** The request of the page of each tenant. */
const ofAcme = cookieBody({ redirect_uri: ACME_PAGE });
const ofRival = cookieBody({ client_id: RIVAL_SITE, organization_id: RIVAL, redirect_uri: RIVAL_PAGE });
/** The request of the public widget, another site of Acme. */
const ofWidget = cookieBody({ client_id: PUBLIC_SITE, redirect_uri: PUBLIC_PAGE });

const group = (name: string) => `/v2/customer/${ACME}/${name}/token`;

/** The message of a `fetch` whose response the page cannot read: in Chromium, and in Firefox. */
const NETWORK_ERROR = /Failed to fetch|NetworkError/;

/** Two processes on one database, whose cookies have `Partitioned` or not. The proxy leads to the current one. */
const registry = rememberingRegistry();
const partitioned = useService({ registry });
const environment = { COOKIE_PARTITIONED: 'false' };
const unpartitioned = useService(() => ({ registry, database: partitioned.database, environment }));
let current: TestService;
let front: HttpsProxy;
const browsers = new CustomerBrowsers();
const profiles = temporaryFolder('profiles');
beforeAll(async () => {
  front = await startHttpsProxy('auth.example', () => current.url);
});
afterEach(() => browsers.clear());
afterAll(async () => {
  await browsers.stop();
  await front?.stop();
});

/** Uses the process for the tests of a `describe`. */
const useProcess = (process: () => TestService) =>
  beforeAll(() => {
    current = process();
  });

const open = (thirdPartyCookies: ThirdPartyCookies = 'default') =>
  browsers.open({ httpsPort: front.port, thirdPartyCookies });

async function entityId(browser: CustomerBrowser, page = ACME_PAGE, body = ofAcme, path = TOKEN): Promise<unknown> {
  const response = await browser.ask(page, body, path);
  expect(response).toMatchObject({ status: 200, body: { entity_id: expect.any(String) } });
  return response.body.entity_id;
}

const customers = () => identitiesOf(current).count();

/** Chromium has the same settings by default and if its user blocks third-party cookies. */
const BLOCKED = BROWSER_NAME === 'firefox' ? 'blocked' : 'default';

/** A newly installed Chromium stores no cookies of another site without `Partitioned`. */
const CASES: [COOKIE_PARTITIONED: string, ThirdPartyCookies][] = [
  ['true', 'default'],
  ['false', BROWSER_NAME === 'firefox' ? 'default' : 'allowed'],
];

describe.each(CASES)(
  'a browser on a page of another site, with COOKIE_PARTITIONED=%s and third-party cookies %s',
  (COOKIE_PARTITIONED, thirdPartyCookies) => {
    useProcess(() => (COOKIE_PARTITIONED === 'true' ? partitioned : unpartitioned));

    it('is one customer, recognized by two cookies, on further calls, after a reload and after a restart', async () => {
      const start = async () => {
        const options = { httpsPort: front.port, thirdPartyCookies };
        const context = await launchProfile(join(profiles, COOKIE_PARTITIONED), options);
        onTestFinished(() => context.close());
        return new CustomerBrowser(context);
      };
      const browser = await start();
      front.seen.length = 0;
      const page = await browser.goTo(ACME_PAGE);
      const { body } = await askFrom(page, ofAcme);
      expect((await askFrom(page, ofAcme)).body.entity_id).toBe(body.entity_id);
      const cookies = expect.stringMatching(/^__svc_cid=[0-9a-f-]{36}; __svc_cst=[0-9a-f]{112}$/);
      const request = { method: 'POST', path: TOKEN, origin: ACME_ORIGIN, site: 'cross-site' };
      expect(front.seen).toEqual([
        { ...request, cookie: undefined },
        { ...request, cookie: cookies },
      ]);
      await page.reload();
      expect((await askFrom(page, ofAcme)).body.entity_id).toBe(body.entity_id);
      await page.context().close();
      expect(await entityId(await start())).toBe(body.entity_id);
    });

    it('needs a preflight for application/json, which the service allows', async () => {
      const browser = await open(thirdPartyCookies);
      const before = await entityId(browser);
      front.seen.length = 0;
      const { body } = await browser.ask(ACME_PAGE, ofAcme, TOKEN, 'application/json');
      expect(body.entity_id).toBe(before);
      expect((await browser.ask(ACME_PAGE, FORGET_BODY, FORGET, 'application/json')).status).toBe(200);
      const requests = [TOKEN, FORGET].flatMap((path) => [`OPTIONS ${path}`, `POST ${path}`]);
      expect(front.seen.map(({ method, path }) => `${method} ${path}`)).toEqual(requests);
    });

    it('stores cookies that scripts cannot read and that are sent over https only', async () => {
      const browser = await open(thirdPartyCookies);
      const { headers } = await browser.ask(ACME_PAGE, ofAcme);
      const attributes = {
        httpOnly: true,
        secure: true,
        sameSite: 'None',
        path: '/v2/customer',
        domain: '.auth.example',
      };
      expect(await browser.cookies()).toEqual([
        expect.objectContaining({ name: '__svc_cid', ...attributes }),
        expect.objectContaining({ name: '__svc_cst', ...attributes }),
      ]);
      expect(headers).not.toHaveProperty('set-cookie');
      expect(await browser.cookiesOfScript(ACME_PAGE)).toBe('');
      expect(await browser.cookiesOfScript(`https://auth.example${TOKEN}`)).toBe('');
    });

    it.each(['text/plain', 'application/json'])(
      'gives a page that no client has registered neither a response nor a cookie nor a customer, sent as %s',
      async (type) => {
        const browser = await open(thirdPartyCookies);
        const before = await customers();
        await expect(browser.ask(EVIL_PAGE, ofAcme, TOKEN, type)).rejects.toThrow(NETWORK_ERROR);
        await expect(browser.ask(EVIL_PAGE, cookieBody(), group('sales'), type)).rejects.toThrow(NETWORK_ERROR);
        expect(await browser.cookies()).toEqual([]);
        expect(await customers()).toBe(before);
      },
    );

    /** Moves the customer of a token to a browser. */
    const remember = async (token: unknown, more: object = {}) => {
      const { code, verifier } = await moveOf(current, token as string);
      return redeemBody(code, { code_verifier: verifier, remember: 'browser', ...more });
    };

    it('has a moved customer over a reload, is forgotten, and comes back as a new customer', async () => {
      const [phone, laptop] = [await open(thirdPartyCookies), await open(thirdPartyCookies)];
      const { entity_id, access_token } = (await phone.ask(ACME_PAGE, ofAcme)).body;
      const page = await laptop.goTo(ACME_PAGE);
      const moved = await askFrom(page, await remember(access_token));
      expect(moved).toMatchObject({ status: 200, body: { entity_id } });
      await page.reload();
      expect((await askFrom(page, ofAcme)).body.entity_id).toBe(entity_id);
      expect(await entityId(laptop)).toBe(entity_id);
      expect(await laptop.ask(ACME_PAGE, FORGET_BODY, FORGET)).toMatchObject({ status: 200, body: {} });
      expect(await laptop.cookies()).toEqual([]);
      const next = await entityId(laptop);
      expect(next).not.toBe(entity_id);
      expect(await entityId(laptop)).toBe(next);
      expect(await entityId(phone)).toBe(entity_id);
    });

    it('replaces its customer by a moved one only after the page has asked for it', async () => {
      const [phone, laptop] = [await open(thirdPartyCookies), await open(thirdPartyCookies)];
      const { entity_id, access_token } = (await phone.ask(ACME_PAGE, ofAcme)).body;
      const known = await entityId(laptop);
      const before = await laptop.cookies();
      const conflict = { status: 409, body: { error: 'identity_conflict' } };
      expect(await laptop.ask(ACME_PAGE, await remember(access_token))).toMatchObject(conflict);
      expect(await laptop.cookies()).toEqual(before);
      expect(await entityId(laptop)).toBe(known);
      const replaced = await laptop.ask(ACME_PAGE, await remember(access_token, { replace: true }));
      expect(replaced).toMatchObject({ status: 200, body: { entity_id } });
      expect(await entityId(laptop)).toBe(entity_id);
    });
  },
);

describe('a browser that sends unpartitioned cookies to all sites', () => {
  useProcess(() => unpartitioned);

  it('sends its cookies only to paths below /v2/customer', async () => {
    const browser = await open('allowed');
    await browser.ask(ACME_PAGE, ofAcme);
    front.seen.length = 0;
    for (const path of ['/v2/customer/token', '/v2/token', '/v2/customers', '/.well-known/jwks.json']) {
      await browser.goTo(`https://auth.example${path}`);
    }
    const shown = front.seen.filter(({ cookie }) => cookie !== undefined).map(({ path }) => path);
    expect(front.seen.map(({ path }) => path)).toContain('/.well-known/jwks.json');
    expect(shown).toEqual(['/v2/customer/token']);
  });

  it('is a separate customer for each tenant, and the same customer for all sites of a tenant', async () => {
    const browser = await open('allowed');
    const toAcme = await entityId(browser);
    const toRival = await entityId(browser, RIVAL_PAGE, ofRival);
    expect(toRival).not.toBe(toAcme);
    expect(await entityId(browser, PUBLIC_PAGE, ofWidget)).toBe(toAcme);
    expect(await entityId(browser)).toBe(toAcme);
    expect(await entityId(browser, RIVAL_PAGE, ofRival)).toBe(toRival);
  });

  it('gives its existing customer to no page that no client has registered', async () => {
    const browser = await open('allowed');
    await entityId(browser);
    const before = await browser.cookies();
    front.seen.length = 0;
    await expect(browser.ask(EVIL_PAGE, ofAcme)).rejects.toThrow(NETWORK_ERROR);
    expect(front.seen).toMatchObject([{ method: 'POST', cookie: expect.stringContaining('__svc_cst=') }]);
    expect(await browser.cookies()).toEqual(before);
  });

  it('never gives the customer of one tenant to the page of another tenant, even with copied parameters', async () => {
    const browser = await open('allowed');
    await entityId(browser);
    const before = { cookies: await browser.cookies(), customers: await customers() };
    const attempts = [
      ofAcme,
      cookieBody(),
      cookieBody({ client_id: RIVAL_SITE }),
      cookieBody({ client_id: RIVAL_SITE, redirect_uri: RIVAL_PAGE }),
      cookieBody({ client_id: PUBLIC_SITE, redirect_uri: PUBLIC_PAGE }),
    ];
    for (const body of attempts) {
      for (const path of [TOKEN, group('sales')]) {
        front.seen.length = 0;
        const response = await browser.ask(RIVAL_PAGE, body, path);
        expect(front.seen).toMatchObject([{ cookie: expect.stringContaining('__svc_cst=') }]);
        expect(response).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
        expect(response.body).not.toHaveProperty('entity_id');
        expect(response.body).not.toHaveProperty('access_token');
      }
    }
    expect({ cookies: await browser.cookies(), customers: await customers() }).toEqual(before);
  });
});

describe('a browser with partitioned cookies', () => {
  useProcess(() => partitioned);

  it('is a separate customer on each site, and sends the cookies of one site to no other site', async () => {
    const browser = await open();
    const onAcme = await entityId(browser);
    front.seen.length = 0;
    const onWidget = await entityId(browser, PUBLIC_PAGE, ofWidget);
    expect(onWidget).not.toBe(onAcme);
    await expect(browser.ask(EVIL_PAGE, ofAcme)).rejects.toThrow(NETWORK_ERROR);
    await browser.goTo(`https://auth.example${TOKEN}`);
    expect(front.seen.map(({ cookie }) => cookie)).toEqual(front.seen.map(() => undefined));
    expect(await entityId(browser)).toBe(onAcme);
    expect(await entityId(browser, PUBLIC_PAGE, ofWidget)).toBe(onWidget);
  });

  it('is one customer for each site in the address bar that shows the page in a frame', async () => {
    const browser = await open();
    const customerInFrame = async (page: string) => {
      const tab = await browser.goTo(page);
      await tab.evaluate(`new Promise((resolve) => {
        const frame = Object.assign(document.createElement('iframe'), { src: '${ACME_PAGE}', onload: resolve });
        document.body.append(frame);
      })`);
      const frame = tab.frames().find((each) => each.url() === ACME_PAGE) as Frame;
      return (await askFrom(frame, ofAcme)).body.entity_id;
    };
    const onAcme = await entityId(browser);
    const [onNews, onRival] = [await customerInFrame(NEWS_PAGE), await customerInFrame(RIVAL_PAGE)];
    expect(new Set([onAcme, onNews, onRival]).size).toBe(3);
    expect(await customerInFrame(NEWS_PAGE)).toBe(onNews);
    expect(await customerInFrame(RIVAL_PAGE)).toBe(onRival);
    expect(await entityId(browser)).toBe(onAcme);
  });
});

describe('a browser that blocks third-party cookies', () => {
  it('is a new customer on every visit with COOKIE_PARTITIONED=false', async () => {
    current = unpartitioned;
    const browser = await open(BLOCKED);
    const visits = [await entityId(browser), await entityId(browser), await entityId(browser)];
    expect(new Set(visits).size).toBe(3);
    expect(await browser.cookies()).toEqual([]);
  });

  it.runIf(BROWSER_NAME === 'firefox')('is a new customer on every visit in Firefox, also by default', async () => {
    current = partitioned;
    const browser = await open(BLOCKED);
    expect(await entityId(browser)).not.toBe(await entityId(browser));
    expect(await browser.cookies()).toEqual([]);
  });
});

/** The browsers that store cookies without `Partitioned` on a page of another site. */
const POLICIES: ThirdPartyCookies[] = BROWSER_NAME === 'firefox' ? ['default', 'allowed'] : ['allowed'];

describe.each(POLICIES)(
  'a browser that holds cookies without Partitioned when COOKIE_PARTITIONED becomes true, third-party cookies %s',
  (thirdPartyCookies) => {
    /** A browser with a pair without `Partitioned`, at the service that sets `Partitioned`. */
    const openUpgraded = async () => {
      const browser = await open(thirdPartyCookies);
      current = unpartitioned;
      const before = await entityId(browser);
      current = partitioned;
      return { browser, before };
    };

    it('is the same customer on the next calls', async () => {
      const { browser, before } = await openUpgraded();
      for (let call = 0; call < 3; call++) expect(await entityId(browser)).toBe(before);
    });

    it('has the same customer on another site of the tenant if it sent the old pair there', async () => {
      const { browser, before } = await openUpgraded();
      const onWidget = await entityId(browser, PUBLIC_PAGE, ofWidget);
      expect(onWidget === before).toBe(thirdPartyCookies === 'allowed');
      expect(await entityId(browser, PUBLIC_PAGE, ofWidget)).toBe(onWidget);
      expect(await entityId(browser)).toBe(before);
    });

    it('is a new customer after it was forgotten, although it still sends the old pair', async () => {
      const { browser, before } = await openUpgraded();
      expect(await entityId(browser)).toBe(before);
      expect(await browser.ask(ACME_PAGE, FORGET_BODY, FORGET)).toMatchObject({ status: 200, body: {} });
      const next = await entityId(browser);
      expect(next).not.toBe(before);
      expect(await entityId(browser)).toBe(next);
    });
  },
);
