import { describe, expect, it } from 'vitest';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { expectNoCustomerCreated, identitiesOf } from '../support/identities.js';
import { ACME, RIVAL_ORIGIN } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const service = useService();

describe('a request that another site makes a browser send, with its cookies (CSRF)', () => {
  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json'])(
    'changes nothing as %s, and the other site cannot read the customer’s data',
    async (type) => {
      const browser = new TestBrowser(service);
      const { entity_id } = (await browser.visit()).body;
      const row = () => identitiesOf(service).findOneByOrFail({ entityId: entity_id });
      const before = await row();
      service.clock.advance({ seconds: 86_400 });
      for (const path of [TOKEN, `/v2/customer/${ACME}/sales/token`]) {
        for (const origin of ['https://evil.example', 'null', RIVAL_ORIGIN]) {
          const headers = { cookie: browser.cookie as string, origin, 'content-type': type };
          const send = () => service.post(path, cookieBody(), headers);
          const response = await expectNoCustomerCreated(service, send, 'Origin');
          expect(response.text).not.toContain(entity_id);
        }
      }
      expect(await row()).toEqual(before);
      expect((await browser.visit()).body.entity_id).toBe(entity_id);
    },
  );
});
