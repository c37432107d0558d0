import { expect, it } from 'vitest';
import { askToken } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { ACME_AGENT, BACKEND_SECRET } from '../support/test-registry.js';
import { startTestService } from '../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';

const MARK = 'MARKEDSECRET';
const ADMIN_TOKEN = 'operator-token-that-nobody-else-knows';

it('no metric holds a secret, an id or anything else that a caller has sent', async () => {
  const service = await startTestService({ environment: { ADMIN_TOKEN } });
  try {
    const customer = await newCustomer(service);
    const code = await transferToken(service, customer.access_token);
    await redeem(service, code);
    await redeem(service, code);
    const fields = { client_id: MARK, client_secret: MARK, grant_type: MARK, code: MARK, refresh_token: MARK };
    await askToken(service, fields);
    await askToken(service, { grant_type: 'refresh_token', refresh_token: MARK });
    await service.post(`${TOKEN}?secret=${MARK}`, cookieBody({ client_id: MARK, [MARK]: MARK }), { origin: MARK });
    await service.post(TOKEN, MARK, { cookie: `__svc_cid=${MARK}; __svc_cst=${MARK}`, 'user-agent': MARK });
    await service.send(MARK, `/${MARK}`, { 'x-request-id': MARK, 'x-forwarded-for': MARK });
    for (const headers of [bearer(MARK), basic(MARK, MARK)]) {
      await service.send('GET', '/v2/customer/info', headers);
      await manage(service, 'POST', '/oauth2/introspect', headers, { token: MARK });
      await manage(service, 'GET', `/admin/identities/${MARK}`, headers);
    }
    const { status, text } = await manage(service, 'GET', '/metrics');
    expect(status).toBe(200);
    const secrets = [MARK, customer.access_token, customer.entity_id, code, ADMIN_TOKEN, BACKEND_SECRET];
    for (const secret of [...secrets, ACME_AGENT.email, ACME_AGENT.password]) expect(text).not.toContain(secret);
  } finally {
    await service.stop();
  }
});
