import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BROWSER_NAME, type ThirdPartyCookies } from '../support/browser-launch.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { askFrom, type CustomerBrowser, CustomerBrowserPool } from '../support/customer-browser.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import { moveOf, rememberingRegistry } from '../support/remember.js';
import { ACME, ACME_PAGE, ACME_SITE } from '../support/test-registry.js';
import { redeemBody } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const FORGET = '/v2/customer/forget';
const AS_CUSTOMER = cookieBody({ redirect_uri: ACME_PAGE });

/** A newly installed Chromium stores no cookies of another site without `Partitioned`. */
const CASES: [COOKIE_PARTITIONED: string, ThirdPartyCookies][] = [
  ['true', 'default'],
  ['false', BROWSER_NAME === 'firefox' ? 'default' : 'allowed'],
];

describe.each(CASES)(
  'a customer who moves to the browser of another device, with COOKIE_PARTITIONED=%s and third-party cookies %s',
  (COOKIE_PARTITIONED, thirdPartyCookies) => {
    const service = useService({ registry: rememberingRegistry(), environment: { COOKIE_PARTITIONED } });
    let front: HttpsProxy;
    const pool = new CustomerBrowserPool();
    beforeAll(async () => {
      front = await startHttpsProxy('auth.example', service.url);
    });
    afterEach(() => pool.release());
    afterAll(async () => {
      await pool.close();
      await front?.stop();
    });

    const open = () => pool.open({ httpsPort: front.port, thirdPartyCookies });
    const visit = async (browser: CustomerBrowser) => (await browser.ask(ACME_PAGE, AS_CUSTOMER)).body;
    const rememberBody = async (token: unknown, more: object = {}) => {
      const { code, verifier } = await moveOf(service, token as string);
      return redeemBody(code, { code_verifier: verifier, remember: 'browser', ...more });
    };
    const remember = async (browser: CustomerBrowser, token: unknown, more: object = {}) =>
      browser.ask(ACME_PAGE, await rememberBody(token, more));

    it('stays there over a reload and a restart, is forgotten there, and comes back as a new customer', async () => {
      const [phone, laptop] = [await open(), await open()];
      const { entity_id, access_token } = await visit(phone);
      const page = await laptop.goTo(ACME_PAGE);
      const moved = await askFrom(page, await rememberBody(access_token));
      expect(moved).toMatchObject({ status: 200, body: { entity_id } });
      expect((await askFrom(page, AS_CUSTOMER)).body.entity_id).toBe(entity_id);
      await page.reload();
      expect((await askFrom(page, AS_CUSTOMER)).body.entity_id).toBe(entity_id);
      await laptop.restart();
      expect((await visit(laptop)).entity_id).toBe(entity_id);
      const body = { client_id: ACME_SITE, organization_id: ACME };
      expect(await laptop.ask(ACME_PAGE, body, FORGET)).toMatchObject({ status: 200, body: {} });
      expect(await laptop.cookies()).toEqual([]);
      const { entity_id: next } = await visit(laptop);
      expect(next).not.toBe(entity_id);
      expect((await visit(laptop)).entity_id).toBe(next);
      expect((await visit(phone)).entity_id).toBe(entity_id);
    });

    it('replaces another customer of that browser only after the page has asked for it', async () => {
      const [phone, laptop] = [await open(), await open()];
      const moved = await visit(phone);
      const known = await visit(laptop);
      const before = await laptop.cookies();
      expect(await remember(laptop, moved.access_token)).toMatchObject({
        status: 409,
        body: { error: 'identity_conflict' },
      });
      expect(await laptop.cookies()).toEqual(before);
      expect((await visit(laptop)).entity_id).toBe(known.entity_id);
      const replaced = await remember(laptop, moved.access_token, { replace: true });
      expect(replaced).toMatchObject({ status: 200, body: { entity_id: moved.entity_id } });
      expect((await visit(laptop)).entity_id).toBe(moved.entity_id);
    });

    it('needs a preflight for application/json, which the service allows at both routes', async () => {
      const laptop = await open();
      const body = { client_id: ACME_SITE, organization_id: ACME };
      front.seen.length = 0;
      expect((await laptop.ask(ACME_PAGE, body, FORGET, 'application/json')).status).toBe(200);
      expect(front.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
        `OPTIONS ${FORGET}`,
        `POST ${FORGET}`,
      ]);
      expect((await laptop.ask(ACME_PAGE, AS_CUSTOMER, TOKEN, 'application/json')).status).toBe(200);
    });
  },
);
