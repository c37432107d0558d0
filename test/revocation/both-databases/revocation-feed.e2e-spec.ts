import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { agentTokenBody, changePassword, claimsOf, exchangeCode, refresh } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { FEED_SECRET, FEED_SERVERS, FeedConsumer, type FeedEntry } from '../../support/revocation-feed.js';
import { ACME, ACME_AGENT } from '../../support/test-registry.js';
import {
  agentTokenPair,
  authorizationCode,
  codesOf,
  newCustomer,
  redeem,
  transferToken,
} from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const registry = { ...refreshingRegistry(), resource_servers: FEED_SERVERS };

const service = useService({ registry });

const newAgent = async (): Promise<{ id: string; email: string }> => {
  const email = `${randomUUID()}@acme.example`;
  const entry = {
    email,
    name: 'New',
    organization_id: ACME,
    password: 'a password of the agent',
    scopes: ['customers:own'],
  };
  return { id: (await service.admin('POST', '/admin/agents', entry)).body.id, email };
};
const consumer = (id: string) => new FeedConsumer([service], basic(id, FEED_SECRET));
const operator = () => new FeedConsumer([service], bearer(ADMIN_TOKEN));

/** Whether the consumers of the three resource servers have an entry, after the operator has it. */
async function seenBy(entry: Partial<FeedEntry>): Promise<Record<string, boolean>> {
  await operator().find(entry);
  const seen = FEED_SERVERS.map(async ({ id }) => {
    const server = consumer(id);
    await server.catchUp();
    return [id, server.has(entry)] as const;
  });
  return Object.fromEntries(await Promise.all(seen));
}

const CUSTOMERS_ONLY = { 'customer-server': true, 'agent-server': false, 'other-server': false };
const BOTH = { 'customer-server': true, 'agent-server': true, 'other-server': false };

describe('the revocation feed', () => {
  it('has a customer token that was ended, for resource servers of customer tokens only', async () => {
    const { access_token } = await newCustomer(service);
    await service.send('DELETE', TOKEN, bearer(access_token));
    const entry = { kind: 'jti', value: claimsOf(access_token).jti as string };
    expect(await seenBy(entry)).toEqual(CUSTOMERS_ONLY);
    expect(await operator().find(entry)).toEqual({
      ...entry,
      issued_before: '9999-12-31T00:00:00.000Z',
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
  });

  it('has an agent token that was ended, which ends customer tokens too', async () => {
    const { access_token } = await agentTokenPair(service);
    await service.send('DELETE', '/v2/token', bearer(access_token));
    expect(await seenBy({ kind: 'jti', value: claimsOf(access_token).jti as string })).toEqual(BOTH);
  });

  it('has a refresh family that was ended, with the id that begins the jti of its tokens', async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    await refresh(service, refresh_token);
    const form = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
    await manage(service, 'POST', '/oauth2/revoke', form, new URLSearchParams({ token: refresh_token }).toString());
    const family = (claimsOf(access_token).jti as string).split('.')[0] as string;
    expect(await seenBy({ kind: 'family', value: family })).toEqual(BOTH);
  });

  it('has the refresh family of a customer, for resource servers of customer tokens only', async () => {
    const { access_token, refresh_token } = await stayOf(service);
    const form = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
    await manage(service, 'POST', '/oauth2/revoke', form, new URLSearchParams({ token: refresh_token }).toString());
    const family = (claimsOf(access_token).jti as string).split('.')[0] as string;
    expect(await seenBy({ kind: 'family', value: family })).toEqual(CUSTOMERS_ONLY);
  });

  it.each(['transfer', 'authorization'] as const)('has the family of a code that was replayed: %s', async (kind) => {
    const customer = await newCustomer(service);
    const isTransfer = kind === 'transfer';
    const code = isTransfer ? await transferToken(service, customer.access_token) : await authorizationCode(service);
    const use = () => (isTransfer ? redeem(service, code) : exchangeCode(service, code));
    const { access_token } = (await use()).body;
    await codesOf(service).update({ kind }, { consumedNetwork: 'another network' });
    expect((await use()).status).toBe(400);
    const family = (claimsOf(access_token).jti as string).split('.')[0] as string;
    expect(await seenBy({ kind: 'family', value: family })).toEqual(isTransfer ? CUSTOMERS_ONLY : BOTH);
  });

  it('has a client that was deleted, whose tokens are of customers and agents', async () => {
    const id = `client-${randomUUID()}`;
    await service.admin('POST', '/admin/clients', {
      client_id: id,
      name: id,
      client_type: 'web',
      organization_id: ACME,
    });
    await service.admin('DELETE', `/admin/clients/${id}`);
    expect(await seenBy({ kind: 'client', value: id })).toEqual(BOTH);
    const { issued_before = '' } = await operator().find({ kind: 'client', value: id });
    expect(Date.parse(issued_before)).toBeGreaterThan(service.clock.now());
  });

  it('has the generation of a customer whose sessions were ended, again after each rise', async () => {
    const { entity_id } = await newCustomer(service);
    const follower = consumer('customer-server');
    for (const generation of [1, 2, 3]) {
      expect((await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id)).status).toBe(200);
      const entry = { kind: 'subject', value: entity_id, generation };
      expect(await follower.find(entry)).not.toHaveProperty('issued_before');
      expect(await seenBy(entry)).toEqual(CUSTOMERS_ONLY);
    }
  });

  it('has the generation of an erased customer', async () => {
    const { entity_id } = await newCustomer(service);
    await service.admin('DELETE', `/admin/identities/${entity_id}`);
    expect(await seenBy({ kind: 'subject', value: entity_id, generation: 1 })).toEqual(CUSTOMERS_ONLY);
  });

  it('has the generation of an agent with a new password, and a higher one after its deletion', async () => {
    const { id } = await newAgent();
    await service.admin('PATCH', `/admin/agents/${id}`, { password: 'a new password of the agent' });
    expect(await seenBy({ kind: 'subject', value: id, generation: 1 })).toEqual(BOTH);
    await service.admin('DELETE', `/admin/agents/${id}`);
    expect(await seenBy({ kind: 'subject', value: id, generation: 2 })).toEqual(BOTH);
  });

  it('has the generation of an agent whose password the registry file changed', async () => {
    const agent = claimsOf(await issueAgentToken(service));
    await changePassword(service, registry, ACME_AGENT.email);
    const generation = (agent.gen as number) + 1;
    expect(await seenBy({ kind: 'subject', value: agent.sub as string, generation })).toEqual(BOTH);
    const renewed = claimsOf(await issueAgentToken(service));
    expect(renewed).toMatchObject({ sub: agent.sub, gen: generation });
  });

  it('has no entry for an agent whose change leaves its tokens valid, or for a sign-in session', async () => {
    const { id } = await newAgent();
    await service.admin('PATCH', `/admin/agents/${id}`, { name: 'Renamed' });
    const { entity_id, access_token } = await newCustomer(service);
    await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
    const all = operator();
    await all.find({ kind: 'subject', value: entity_id });
    expect(all.has({ value: id })).toBe(false);
    expect(all.has({ value: claimsOf(access_token).jti as string })).toBe(false);
  });

  it('keeps an entry of an agent’s token for as long as any access token can live, and no longer', async () => {
    const token = await issueAgentToken(service);
    const before = service.clock.now();
    await service.send('DELETE', '/v2/token', bearer(token));
    const entry = { kind: 'jti', value: claimsOf(token).jti as string };
    const { expires_at } = await operator().find(entry);
    expect(Date.parse(expires_at)).toBeGreaterThanOrEqual(before + 86_400_000);
    service.clock.advance({ seconds: 86_000 });
    expect(await seenBy(entry)).toEqual(BOTH);
    service.clock.advance({ seconds: 1_000 });
    const late = operator();
    await late.catchUp();
    expect(late.has(entry)).toBe(false);
    service.clock.reset();
  });

  it('lists a token of an agent in the ancestors of the customer tokens that its entry ends', async () => {
    const token = await issueAgentToken(service);
    const { access_token } = (await service.post(TOKEN, agentTokenBody(), bearer(token))).body;
    await service.send('DELETE', '/v2/token', bearer(token));
    const { value } = await consumer('customer-server').find({ kind: 'jti', value: claimsOf(token).jti as string });
    expect(claimsOf(access_token).ancestors).toContain(value);
  });
});
