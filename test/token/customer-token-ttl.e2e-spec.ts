import { describe, expect, it } from 'vitest';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME, ACME_SITE, testRegistry } from '../support/test-registry.js';
import { redeem, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const BRIEF = 'acme-brief';
const LONG = 'acme-long';

function registryWithLifetimes() {
  const registry = testRegistry();
  const client = { name: 'Acme', client_type: 'web', organization_id: ACME };
  registry.clients.push(
    { ...client, client_id: BRIEF, customer_token_ttl: 60 },
    { ...client, client_id: LONG, customer_token_ttl: 86_400 },
  );
  return registry;
}

describe('customer_token_ttl of a client', () => {
  const service = useService({ registry: registryWithLifetimes() });

  const lifetimeOf = ({ access_token, expires_in }: { access_token: string; expires_in: number }) => {
    const { iat, exp } = claimsOf(access_token) as Record<string, number>;
    expect(Number(exp) - Number(iat)).toBe(expires_in);
    return expires_in;
  };

  it('replaces CUSTOMER_TOKEN_TTL for the customer tokens of the client, with each grant', async () => {
    const agent = await issueAgentToken(service);
    for (const [client_id, lifetime] of [
      [BRIEF, 60],
      [LONG, 86_400],
      [ACME_SITE, 28_800],
    ] as const) {
      expect(lifetimeOf((await service.post(TOKEN, cookieBody({ client_id }))).body)).toBe(lifetime);
      const byAgent = (await service.post(TOKEN, agentTokenBody({ client_id }), bearer(agent))).body;
      expect(lifetimeOf(byAgent)).toBe(lifetime);
      const code = await transferToken(service, byAgent.access_token, { client_id });
      expect(lifetimeOf((await redeem(service, code, { client_id })).body)).toBe(lifetime);
    }
  });

  it('can be set, shown and removed by the admin API', async () => {
    const send = (method: string, path: string, body?: object) => service.admin(method, `/admin/clients${path}`, body);
    const entry = { client_id: 'acme-new', name: 'New', client_type: 'web', organization_id: ACME };
    const created = await send('POST', '', { ...entry, customer_token_ttl: 300 });
    expect(created.body).toMatchObject({ customer_token_ttl: 300 });
    const request = async () => (await service.post(TOKEN, cookieBody({ client_id: 'acme-new' }))).body;
    expect(lifetimeOf(await request())).toBe(300);
    const removed = await send('PATCH', '/acme-new', { customer_token_ttl: null });
    expect(removed.body).not.toHaveProperty('customer_token_ttl');
    expect(lifetimeOf(await request())).toBe(28_800);
    expect((await send('PATCH', '/acme-new', { customer_token_ttl: 59 })).status).toBe(400);
  });
});
