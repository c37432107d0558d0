import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { ACME } from '../support/registry.js';
import { startTestService, type TestService } from '../support/service.js';

describe('4.1 cookie grant: new or existing customer', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service?.stop());

  it('creates a customer for a request without identity cookies and answers with the fields of 2.2', async () => {
    const { status, body } = await service.post(TOKEN, cookieBody());
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^dev:[\w-]+\.[\w-]+\.[\w-]+$/),
      entity_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      expires_in: 28_800,
      token_type: 'Bearer',
      organization_id: ACME,
    });
  });

  it('gives a returning customer a new token and the same entity_id', async () => {
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    const second = await browser.visit();
    expect(second.body.entity_id).toBe(first.body.entity_id);
    expect(second.body.access_token).not.toBe(first.body.access_token);
  });
});
