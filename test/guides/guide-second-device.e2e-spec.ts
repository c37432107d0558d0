import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay } from '../support/customer-refresh.js';
import { moveOf, rememberedPair } from '../support/remember.js';
import { ACME, ACME_SITE, testRegistry } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { serviceOfTest } from '../support/use-service.js';

const END = '/v2/customer/end_sessions';

let service: TestService;
beforeAll(async () => {
  const grants = { identity_token: { remember: ['browser', 'refresh_token'] } };
  service = await startTestService({ registry: refreshingRegistry({ grants }) });
});
afterAll(() => service?.stop());

/** A laptop with two tokens. It has moved its customer to the browser and to an app of a phone with the first token. */
async function startMoved() {
  const laptop = new TestBrowser(service);
  const { entity_id, access_token: first } = (await laptop.visit()).body;
  const browser = await rememberedPair(service, first);
  const app = (await stay(service, await moveOf(service, first))).body;
  const newer = (await laptop.visit()).body.access_token;
  return { first, newer, cookie: laptop.cookie as string, browser, app, entity_id };
}

type Moved = Awaited<ReturnType<typeof startMoved>>;

describe('the table of docs/integrating/second-device.md: a laptop logs out after it moved its customer', () => {
  it.each<[string, (moved: Moved) => Promise<unknown>, { browser: boolean; app: boolean }]>([
    [
      'forget ends nothing on the phone',
      ({ cookie }) => service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie }),
      { browser: true, app: true },
    ],
    [
      'DELETE of a newer token ends nothing on the phone',
      ({ newer }) => service.send('DELETE', TOKEN, bearer(newer)),
      { browser: true, app: true },
    ],
    [
      'DELETE of the token that created the transfers ends the browser and the app of the phone',
      ({ first }) => service.send('DELETE', TOKEN, bearer(first)),
      { browser: false, app: false },
    ],
    [
      'end_sessions ends the browser and the app of the phone, which got the customer by a transfer',
      ({ newer }) => service.post(END, {}, bearer(newer)),
      { browser: false, app: false },
    ],
    [
      'end_sessions with browsers: true ends the browser and the app of the phone',
      ({ newer, cookie }) => service.post(END, { browsers: true }, { ...bearer(newer), cookie }),
      { browser: false, app: false },
    ],
  ])('%s', async (_, logOut, expected) => {
    const moved = await startMoved();
    expect(await logOut(moved)).toMatchObject({ status: 200 });
    const visit = await service.post(TOKEN, cookieBody(), { cookie: moved.browser });
    const renewal = await refreshCustomer(service, moved.app.refresh_token);
    const browser = visit.body.entity_id === moved.entity_id;
    expect({ browser, app: renewal.status === 200 }).toEqual(expected);
  });
});

const EXAMPLES = join(import.meta.dirname, '../../examples/integrating');
const ORIGIN = 'https://shop.example';

it.each([
  ['shop-site', 'browser', { origin: ORIGIN }],
  ['shop-app', 'refresh_token', {}],
])('second-device/registry.yaml lets a page move its customer to %s', async (client_id, remember, headers) => {
  const { clients } = parse(readFileSync(join(EXAMPLES, 'second-device/registry.yaml'), 'utf8'));
  const service = await serviceOfTest({ registry: { ...testRegistry(), clients } });
  const page = { grant_type: 'cookie', response_type: 'token', client_id: 'shop-site', organization_id: ACME };
  const { entity_id, access_token } = (await service.post(TOKEN, page, { origin: ORIGIN })).body;
  const { verifier: code_verifier, asked } = pkce();
  const transfer = { bearer_type: 'customer', client_id, ...asked };
  const approval = await service.post('/v2/customer/identity_transfer', transfer, {
    ...bearer(access_token),
    origin: ORIGIN,
  });
  const code = approval.body.identity_transfer_token;
  const exchange = { grant_type: 'identity_token', client_id, code, code_verifier, remember };
  const { status, body } = await service.post(TOKEN, exchange, headers);
  expect({ status, body }).toMatchObject({ status: 200, body: { entity_id } });
  if (remember === 'refresh_token')
    expect((await refreshCustomer(service, body.refresh_token, { client_id })).status).toBe(200);
});
