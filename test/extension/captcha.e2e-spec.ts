import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { captchaExtension } from '../support/captcha-extension.js';
import { cookieBody, cookieHeader } from '../support/cookie-grant.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import { useService } from '../support/use-service.js';

const captchas = createServer(async (request, response) => {
  const solution = new URLSearchParams(await text(request)).get('response');
  if (solution === 'outage') response.destroy();
  else response.end(JSON.stringify({ success: solution === 'solved' }));
});

describe('an extension that asks for a captcha', () => {
  beforeAll(async () => {
    await new Promise<void>((resolve) => captchas.listen(0, '127.0.0.1', resolve));
    vi.stubEnv('CAPTCHA_URL', `http://127.0.0.1:${(captchas.address() as AddressInfo).port}/`);
    vi.stubEnv('CAPTCHA_SECRET', 'secret');
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    captchas.close();
  });
  const service = useService(captchaExtension);
  const visit = (captcha: unknown, cookie = '') => service.visit(cookie, cookieBody({ captcha }));

  it('creates the customer of a browser with a solution, and lets the browser return without one', async () => {
    const first = await visit('solved');
    expect(first.status).toBe(200);
    expect((await service.visit(cookieHeader(first))).body.entity_id).toBe(first.body.entity_id);
  });

  it('responds with invalid_request without a solution, and with 503 while the other system is unavailable', async () => {
    expectInvalidRequest(await visit(['solved']), 'captcha: required');
    expectInvalidRequest(await visit('wrong'), 'captcha: not solved');
    expectError(await visit('outage'), { status: 503, error: 'temporarily_unavailable', hint: undefined });
  });
});
