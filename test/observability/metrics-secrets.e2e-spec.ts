import { expect, it } from 'vitest';
import { askToken } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { ACME_AGENT, BACKEND_SECRET } from '../support/test-registry.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';
import { serviceOfTest } from '../support/use-service.js';

const MARKER = 'MARKEDSECRET';
const ADMIN_TOKEN = 'operator-token-of-the-tests-0123456789';

it('the metrics contain no secret, id or other value that a caller sends', async () => {
  const service = await serviceOfTest({ environment: { ADMIN_TOKEN } });
  const customer = await newCustomer(service);
  const code = await transferToken(service, customer.access_token);
  await redeem(service, code);
  await redeem(service, code);
  const fields = {
    client_id: MARKER,
    client_secret: MARKER,
    grant_type: MARKER,
    code: MARKER,
    refresh_token: MARKER,
  };
  await askToken(service, fields);
  await askToken(service, { grant_type: 'refresh_token', refresh_token: MARKER });
  await service.post(`${TOKEN}?secret=${MARKER}`, cookieBody({ client_id: MARKER, [MARKER]: MARKER }), {
    origin: MARKER,
  });
  await service.post(TOKEN, MARKER, { cookie: `__svc_cid=${MARKER}; __svc_cst=${MARKER}`, 'user-agent': MARKER });
  await service.send(MARKER, `/${MARKER}`, { 'x-request-id': MARKER, 'x-forwarded-for': MARKER });
  for (const headers of [bearer(MARKER), basic(MARKER, MARKER)]) {
    await service.send('GET', '/v2/customer/info', headers);
    await manage(service, 'POST', '/oauth2/introspect', headers, { token: MARKER });
    await manage(service, 'GET', `/admin/identities/${MARKER}`, headers);
  }
  const { status, text } = await manage(service, 'GET', '/metrics');
  expect(status).toBe(200);
  const secrets = [MARKER, customer.access_token, customer.entity_id, code, ADMIN_TOKEN, BACKEND_SECRET];
  for (const secret of [...secrets, ACME_AGENT.email, ACME_AGENT.password]) expect(text).not.toContain(secret);
});
