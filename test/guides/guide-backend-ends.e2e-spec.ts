import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { loadExample } from '../support/load-example.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { agentTokenPair, infoStatus } from '../support/transfers.js';

const { CustomerTokens } = await loadExample('backend/customer-tokens.js');

let service: TestService;
let issuer: TestIssuer;
beforeAll(async () => {
  issuer = await TestIssuer.start();
  service = await startTestService({ environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify([issuer.trust()]) } });
});
afterAll(async () => {
  await service?.stop();
  await issuer?.stop();
});

const obtain = async (agentToken: string, at = service) =>
  (await at.post(TOKEN, agentTokenBody({ external_id: 'user-1' }), bearer(agentToken))).body;
const agentStatus = async (agentToken: string, at = service) =>
  (await at.post(TOKEN, agentTokenBody({ external_id: 'user-1' }), bearer(agentToken))).status;

interface Tokens {
  agentToken: string;
  refreshToken: string;
  entityId: string;
}
const EVENTS: [string, number, number, (tokens: Tokens) => Promise<unknown>][] = [
  ['a renewal', 200, 200, ({ refreshToken }) => refresh(service, refreshToken)],
  [
    'a second use of an old refresh token',
    401,
    401,
    async ({ refreshToken }) => {
      const { body } = await refresh(service, refreshToken);
      await refresh(service, body.refresh_token);
      await refresh(service, refreshToken);
    },
  ],
  ['DELETE /v2/token', 401, 401, ({ agentToken }) => service.send('DELETE', '/v2/token', bearer(agentToken))],
  [
    'end_sessions',
    200,
    401,
    ({ agentToken, entityId }) =>
      service.post('/v2/customer/end_sessions', { customer_id: entityId }, bearer(agentToken)),
  ],
];

describe('“What ends the tokens” in docs/integrating/backend.md', () => {
  it.each(EVENTS)('after %s the agent token gets %i and the customer token %i', async (_, agent, customer, event) => {
    const { access_token: agentToken, refresh_token: refreshToken } = await agentTokenPair(service);
    const { access_token: customerToken, entity_id: entityId } = await obtain(agentToken);
    await event({ agentToken, refreshToken, entityId });
    expect(await infoStatus(service, customerToken)).toBe(customer);
    expect(await agentStatus(agentToken)).toBe(agent);
  });

  it('a customer token stays valid after its trusted issuer was removed, and ends with the token of the issuer', async () => {
    const agentToken = await issuer.sign(service.clock.now());
    const { access_token: customerToken } = await obtain(agentToken);
    const without = await startTestService({ database: service.database });
    try {
      expect(await agentStatus(agentToken, without)).toBe(401);
      expect(await infoStatus(without, customerToken)).toBe(200);
      expect((await service.send('DELETE', '/v2/token', bearer(agentToken))).status).toBe(200);
      expect(await infoStatus(without, customerToken)).toBe(401);
    } finally {
      await without.stop();
    }
  });
});

describe('backend/customer-tokens.js', () => {
  it('requests one token for many calls, and one more if the API rejects it', async () => {
    const { access_token: agentToken } = await agentTokenPair(service);
    const session = { token: async () => agentToken };
    const tokens = new CustomerTokens({ url: service.url, clientId: ACME_SITE, session });
    const used: string[] = [];
    const info = (token: string) => {
      used.push(token);
      return service.send('GET', '/v2/customer/info', bearer(token));
    };
    expect((await tokens.call('user-2', info)).status).toBe(200);
    await service.send('DELETE', '/v2/customer/token', bearer(used[0] as string));
    expect((await tokens.call('user-2', info)).status).toBe(200);
    expect(used[1]).toBe(used[0]);
    expect(used[2]).not.toBe(used[0]);
    expect((await tokens.call('user-2', async () => ({ status: 401 }))).status).toBe(401);
  });
});
