import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { CustomerBrowser } from '../support/customer-browser.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import { moveOf, rememberingRegistry } from '../support/remember.js';
import { ACME, ACME_PAGE, ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { redeemBody } from '../support/transfers.js';

const FORGET = '/v2/customer/forget';
const AS_CUSTOMER = cookieBody({ redirect_uri: ACME_PAGE });

describe.each(['true', 'false'])(
  'a customer who moves to the browser of another device, with COOKIE_PARTITIONED=%s',
  (COOKIE_PARTITIONED) => {
    let service: TestService;
    let front: HttpsProxy;
    const browsers: CustomerBrowser[] = [];
    beforeAll(async () => {
      service = await startTestService({ registry: rememberingRegistry(), environment: { COOKIE_PARTITIONED } });
      front = await startHttpsProxy('auth.example', service.url);
    });
    afterEach(async () => {
      for (const browser of browsers.splice(0)) await browser.close();
    });
    afterAll(async () => {
      await front?.stop();
      await service?.stop();
    });

    const open = async () => {
      const browser = await CustomerBrowser.open({ port: front.port });
      browsers.push(browser);
      return browser;
    };
    const visit = async (browser: CustomerBrowser) => (await browser.ask(ACME_PAGE, AS_CUSTOMER)).body;
    const remember = async (browser: CustomerBrowser, token: unknown, more: object = {}) => {
      const { code, verifier } = await moveOf(service, token as string);
      return browser.ask(ACME_PAGE, redeemBody(code, { code_verifier: verifier, remember: 'browser', ...more }));
    };

    it('stays there over a restart, is forgotten there, and comes back as a new customer', async () => {
      const [phone, laptop] = [await open(), await open()];
      const { entity_id, access_token } = await visit(phone);
      expect(await remember(laptop, access_token)).toMatchObject({ status: 200, body: { entity_id } });
      expect((await visit(laptop)).entity_id).toBe(entity_id);
      await laptop.restart();
      expect((await visit(laptop)).entity_id).toBe(entity_id);
      const body = { client_id: ACME_SITE, organization_id: ACME };
      expect(await laptop.ask(ACME_PAGE, body, FORGET)).toMatchObject({ status: 200, body: {} });
      expect(await laptop.cookies()).toEqual([]);
      expect((await visit(laptop)).entity_id).not.toBe(entity_id);
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
