import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer } from '../support/customer-refresh.js';
import { ACME, testRegistry } from '../support/test-registry.js';
import { startTestService } from '../support/test-service.js';

const EXAMPLES = join(import.meta.dirname, '../../examples/integrating');
const ORIGIN = 'https://shop.example';

it.each([
  ['shop-site', 'browser', { origin: ORIGIN }],
  ['shop-app', 'refresh_token', {}],
])('second-device/registry.yaml lets a page move its customer to %s', async (client_id, remember, headers) => {
  const { clients } = parse(readFileSync(join(EXAMPLES, 'second-device/registry.yaml'), 'utf8'));
  const service = await startTestService({ registry: { ...testRegistry(), clients } });
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
  await service.stop();
});
