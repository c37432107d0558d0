import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BROWSER_NAME, type ThirdPartyCookies } from '../support/browser-launch.js';
import { cookieBody } from '../support/cookie-grant.js';
import { type CustomerBrowser, CustomerBrowserPool } from '../support/customer-browser.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import { ACME, ACME_PAGE, ACME_SITE, PUBLIC_ORIGIN, PUBLIC_SITE } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const FORGET = '/v2/customer/forget';
const ON_ACME = cookieBody({ redirect_uri: ACME_PAGE });
const ON_WIDGET = cookieBody({ client_id: PUBLIC_SITE, redirect_uri: `${PUBLIC_ORIGIN}/` });

/** The browsers that store cookies without `Partitioned` on a page of another site. */
const POLICIES: ThirdPartyCookies[] = BROWSER_NAME === 'firefox' ? ['default', 'allowed'] : ['allowed'];

describe.each(POLICIES)(
  'a browser that holds cookies without Partitioned when COOKIE_PARTITIONED becomes true, third-party cookies %s',
  (thirdPartyCookies) => {
    const pool = new CustomerBrowserPool();
    let unpartitioned: TestService;
    let partitioned: TestService;
    let current: TestService;
    let front: HttpsProxy;
    beforeAll(async () => {
      unpartitioned = await startTestService({ environment: { COOKIE_PARTITIONED: 'false' } });
      partitioned = await startTestService({ database: unpartitioned.database });
      front = await startHttpsProxy('auth.example', () => current.url);
    });
    afterEach(() => pool.release());
    afterAll(async () => {
      await pool.close();
      await front?.stop();
      await partitioned?.stop();
      await unpartitioned?.stop();
    });

    const visit = async (browser: CustomerBrowser) => (await browser.ask(ACME_PAGE, ON_ACME)).body.entity_id;
    /** A browser with a pair without `Partitioned`, at the service that sets `Partitioned`. */
    const openUpgraded = async () => {
      const browser = await pool.open({ httpsPort: front.port, thirdPartyCookies });
      current = unpartitioned;
      const entityId = await visit(browser);
      current = partitioned;
      return { browser, entityId };
    };

    it('is the same customer on the next calls and after a restart', async () => {
      const { browser, entityId } = await openUpgraded();
      for (let call = 0; call < 3; call++) expect(await visit(browser)).toBe(entityId);
      await browser.restart();
      expect(await visit(browser)).toBe(entityId);
    });

    it('has the same customer on another site of the tenant if it sent the old pair there', async () => {
      const { browser, entityId } = await openUpgraded();
      const { body } = await browser.ask(`${PUBLIC_ORIGIN}/`, ON_WIDGET);
      expect(body.entity_id === entityId).toBe(thirdPartyCookies === 'allowed');
      expect((await browser.ask(`${PUBLIC_ORIGIN}/`, ON_WIDGET)).body.entity_id).toBe(body.entity_id);
      expect(await visit(browser)).toBe(entityId);
    });

    it('is a new customer after it was forgotten, although it still sends the old pair', async () => {
      const { browser, entityId } = await openUpgraded();
      expect(await visit(browser)).toBe(entityId);
      const body = { client_id: ACME_SITE, organization_id: ACME };
      expect(await browser.ask(ACME_PAGE, body, FORGET)).toMatchObject({ status: 200, body: {} });
      const next = await visit(browser);
      expect(next).not.toBe(entityId);
      expect(await visit(browser)).toBe(next);
    });
  },
);
