import type { Frame } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { selectStatement } from '../../src/platform/database/statement.js';
import { BROWSER_NAME, type ThirdPartyCookies } from '../support/browser-launch.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { askFrom, type CustomerBrowser, CustomerBrowserPool } from '../support/customer-browser.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_PAGE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_SITE,
} from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const RIVAL_PAGE = 'https://rival.example/';
const PUBLIC_PAGE = `${PUBLIC_ORIGIN}/`;
const NEWS_PAGE = 'https://news.example/';
const EVIL_PAGE = 'https://evil.example/';

/** The request of the page of each tenant. */
const ofAcme = cookieBody({ redirect_uri: ACME_PAGE });
const ofRival = cookieBody({ client_id: RIVAL_SITE, organization_id: RIVAL, redirect_uri: RIVAL_PAGE });
/** The request of the public widget, another site of Acme. */
const ofWidget = cookieBody({ client_id: PUBLIC_SITE, redirect_uri: PUBLIC_PAGE });

const group = (name: string) => `/v2/customer/${ACME}/${name}/token`;

/** The message of a `fetch` whose response the page cannot read: in Chromium, and in Firefox. */
const NETWORK_ERROR = /Failed to fetch|NetworkError/;

let service: TestService;
let front: HttpsProxy;
const pool = new CustomerBrowserPool();

async function start(environment: Record<string, string> = {}): Promise<void> {
  service = await startTestService({ environment });
  front = await startHttpsProxy('auth.example', service.url);
}

async function stop(): Promise<void> {
  await pool.close();
  await front?.stop();
  await service?.stop();
}

function openCustomerBrowser(thirdPartyCookies: ThirdPartyCookies = 'default'): Promise<CustomerBrowser> {
  return pool.open({ httpsPort: front.port, thirdPartyCookies });
}

async function entityId(browser: CustomerBrowser, page = ACME_PAGE, body = ofAcme, path = TOKEN): Promise<unknown> {
  const response = await browser.ask(page, body, path);
  expect(response).toMatchObject({ status: 200, body: { entity_id: expect.any(String) } });
  return response.body.entity_id;
}

async function customers(): Promise<number> {
  const database = service.application.get(Database);
  return (await database.select(selectStatement<[], unknown>('SELECT entity_id FROM customer'), [])).length;
}

afterEach(() => pool.release());

/** A newly installed Chromium stores no cookies of another site without `Partitioned`. */
const CASES: [COOKIE_PARTITIONED: string, ThirdPartyCookies][] = [
  ['true', 'default'],
  ['false', BROWSER_NAME === 'firefox' ? 'default' : 'allowed'],
];

describe.each(CASES)(
  'a browser on a page of another site, with COOKIE_PARTITIONED=%s and third-party cookies %s',
  (COOKIE_PARTITIONED, thirdPartyCookies) => {
    beforeAll(() => start({ COOKIE_PARTITIONED }));
    afterAll(stop);
    const openBrowser = () => openCustomerBrowser(thirdPartyCookies);

    it('is the same customer on the second call of a page, and after a reload', async () => {
      const page = await (await openBrowser()).goTo(ACME_PAGE);
      const { body } = await askFrom(page, ofAcme);
      expect((await askFrom(page, ofAcme)).body.entity_id).toBe(body.entity_id);
      await page.reload();
      expect((await askFrom(page, ofAcme)).body.entity_id).toBe(body.entity_id);
    });

    it('becomes a customer on its first visit and is recognized by two cookies on the next visit', async () => {
      const browser = await openBrowser();
      front.seen.length = 0;
      const first = await entityId(browser);
      expect(await entityId(browser)).toBe(first);
      const cookies = expect.stringMatching(/^__svc_cid=[0-9a-f-]{36}; __svc_cst=[0-9a-f]{96}$/);
      const request = { method: 'POST', path: TOKEN, origin: ACME_ORIGIN, site: 'cross-site' };
      expect(front.seen).toEqual([
        { ...request, cookie: undefined },
        { ...request, cookie: cookies },
      ]);
    });

    it('is the same customer after a restart of the browser', async () => {
      const browser = await openBrowser();
      const before = await entityId(browser);
      await browser.restart();
      expect(await entityId(browser)).toBe(before);
    });

    it('is the same customer for a page that sends application/json, which needs a preflight request', async () => {
      const browser = await openBrowser();
      const before = await entityId(browser);
      front.seen.length = 0;
      const { body } = await browser.ask(ACME_PAGE, ofAcme, TOKEN, 'application/json');
      expect(front.seen.map(({ method }) => method)).toEqual(['OPTIONS', 'POST']);
      expect(body.entity_id).toBe(before);
    });

    it('stores cookies that scripts cannot read and that are sent over https only', async () => {
      const browser = await openBrowser();
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

    it('has a separate identity in each group, and keeps all of them', async () => {
      const browser = await openBrowser();
      const outside = await entityId(browser);
      const sales = await entityId(browser, ACME_PAGE, ofAcme, group('sales'));
      const support = await entityId(browser, ACME_PAGE, ofAcme, group('support'));
      expect(new Set([outside, sales, support]).size).toBe(3);
      expect(await entityId(browser, ACME_PAGE, ofAcme, group('sales'))).toBe(sales);
      expect(await entityId(browser, ACME_PAGE, ofAcme, group('support'))).toBe(support);
      expect(await entityId(browser)).toBe(outside);
    });

    it('is another customer than another browser', async () => {
      const [one, other] = [await openBrowser(), await openBrowser()];
      const first = await entityId(one);
      expect(await entityId(other)).not.toBe(first);
      expect(await entityId(one)).toBe(first);
    });

    it.each(['text/plain', 'application/json'])(
      'gives a page that no client has registered neither a response nor a cookie nor a customer, sent as %s',
      async (type) => {
        const browser = await openBrowser();
        const before = await customers();
        await expect(browser.ask(EVIL_PAGE, ofAcme, TOKEN, type)).rejects.toThrow(NETWORK_ERROR);
        await expect(browser.ask(EVIL_PAGE, cookieBody(), group('sales'), type)).rejects.toThrow(NETWORK_ERROR);
        expect(await browser.cookies()).toEqual([]);
        expect(await customers()).toBe(before);
      },
    );

    it('shows the error response to a registered page', async () => {
      const browser = await openBrowser();
      const cases: [sent: object | string, status: number, error: object][] = [
        ['{ "grant_type": ', 400, { error: 'invalid_request', exception_description: 'Invalid message' }],
        [{}, 400, { oauth_exception: 'invalid_request', error_hint: 'grant_type: required' }],
        [{ grant_type: 'nobody' }, 400, { oauth_exception: 'unsupported_grant_type' }],
        [cookieBody({ redirect_uri: EVIL_PAGE }), 400, { error_hint: expect.stringMatching(/^redirect_uri: /) }],
        [{ padding: 'x'.repeat(17_000) }, 413, { oauth_exception: 'payload_too_large' }],
      ];
      for (const [sent, status, error] of cases) {
        expect(await browser.ask(ACME_PAGE, sent)).toMatchObject({ status, body: error });
      }
      expect(await browser.cookies()).toEqual([]);
    });
  },
);

describe('a browser that sends unpartitioned cookies to all sites', () => {
  beforeAll(() => start({ COOKIE_PARTITIONED: 'false' }));
  afterAll(stop);

  it('sends its cookies only to paths below /v2/customer', async () => {
    const browser = await openCustomerBrowser('allowed');
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
    const browser = await openCustomerBrowser('allowed');
    const toAcme = await entityId(browser);
    const toRival = await entityId(browser, RIVAL_PAGE, ofRival);
    expect(toRival).not.toBe(toAcme);
    expect(await entityId(browser, PUBLIC_PAGE, ofWidget)).toBe(toAcme);
    expect(await entityId(browser)).toBe(toAcme);
    expect(await entityId(browser, RIVAL_PAGE, ofRival)).toBe(toRival);
  });

  it('gives its existing customer to no page that no client has registered', async () => {
    const browser = await openCustomerBrowser('allowed');
    await entityId(browser);
    const before = await browser.cookies();
    front.seen.length = 0;
    await expect(browser.ask(EVIL_PAGE, ofAcme)).rejects.toThrow(NETWORK_ERROR);
    expect(front.seen).toMatchObject([{ method: 'POST', cookie: expect.stringContaining('__svc_cst=') }]);
    expect(await browser.cookies()).toEqual(before);
  });

  it('never gives the customer of one tenant to the page of another tenant, even with copied parameters', async () => {
    const browser = await openCustomerBrowser('allowed');
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
  beforeAll(() => start());
  afterAll(stop);

  it('is a separate customer on each site, and sends the cookies of one site to no other site', async () => {
    const browser = await openCustomerBrowser();
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
    const browser = await openCustomerBrowser();
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
  afterEach(async () => {
    await pool.release();
    await stop();
  });

  it('is a new customer on every visit with COOKIE_PARTITIONED=false', async () => {
    await start({ COOKIE_PARTITIONED: 'false' });
    const browser = await openCustomerBrowser('blocked');
    const visits = [await entityId(browser), await entityId(browser), await entityId(browser)];
    expect(new Set(visits).size).toBe(3);
    expect(await browser.cookies()).toEqual([]);
  });

  it.runIf(BROWSER_NAME === 'firefox')('is a new customer on every visit in Firefox, also by default', async () => {
    await start();
    const browser = await openCustomerBrowser('blocked');
    expect(await entityId(browser)).not.toBe(await entityId(browser));
    expect(await browser.cookies()).toEqual([]);
  });

  it.runIf(BROWSER_NAME === 'chromium')('is one customer per site by default in Chromium', async () => {
    await start();
    const browser = await openCustomerBrowser('blocked');
    const onAcme = await entityId(browser);
    const onWidget = await entityId(browser, PUBLIC_PAGE, ofWidget);
    expect(onWidget).not.toBe(onAcme);
    expect(await entityId(browser)).toBe(onAcme);
    expect(await entityId(browser, PUBLIC_PAGE, ofWidget)).toBe(onWidget);
  });
});
