import { randomUUID } from 'node:crypto';
import type { TokenVerifier } from 'token-verifier';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { endSessions } from '../support/end-sessions.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { FEED_SECRET } from '../support/revocation-feed.js';
import { decisionOf, registryWithServers, verifierOf } from '../support/service-verifier.js';
import { ACME } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const service = useService({ registry: registryWithServers() });
let ofCustomers: TokenVerifier;
let ofAgents: TokenVerifier;
beforeAll(async () => {
  ofCustomers = verifierOf(service);
  ofAgents = verifierOf(service, { audience: 'agent-api' });
  await Promise.all([ofCustomers.ready(), ofAgents.ready()]);
});
afterAll(async () => {
  ofCustomers?.close();
  ofAgents?.close();
});

const verifierFor = (token: string) => (claimsOf(token).aud === 'agent-api' ? ofAgents : ofCustomers);
const decision = (token: string) => decisionOf(verifierFor(token), token);

/** What the service itself decides. */
async function isActive(token: string): Promise<boolean> {
  const server = claimsOf(token).aud === 'agent-api' ? 'agent-server' : 'customer-server';
  const headers = { ...basic(server, FEED_SECRET), 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams({ token }).toString();
  return (await request(`${service.managementUrl}/oauth2/introspect`, { method: 'POST', headers, body })).body.active;
}

const descendantOf = async (token: string): Promise<string> =>
  (await redeem(service, await transferToken(service, token))).body.access_token;
const customerTokenOf = async (agentToken: string): Promise<string> =>
  (await service.post(TOKEN, agentTokenBody(), bearer(agentToken))).body.access_token;

async function newAgent(): Promise<{ path: string; email: string }> {
  const email = `${randomUUID()}@acme.example`;
  const password = 'a password of the agent';
  const entry = { email, password, name: 'New', organization_id: ACME, scopes: ['customers:own'] };
  const { body } = await service.admin('POST', '/admin/agents', entry);
  return { path: `/admin/agents/${body.id}`, email };
}

async function newClient(): Promise<{ path: string; clientId: string }> {
  const clientId = `site-${randomUUID()}`;
  const entry = { client_id: clientId, name: 'New', client_type: 'web', organization_id: ACME };
  expect(
    (await service.admin('POST', '/admin/clients', { ...entry, redirect_uris: ['https://acme.example/chat/'] })).status,
  ).toBe(201);
  return { path: `/admin/clients/${clientId}`, clientId };
}

/** The tokens that an event ends, and the tokens that it does not end. */
interface Case {
  ended: string[];
  valid: string[];
  event: () => Promise<{ status: number }>;
  reasons: string[];
}

const CASES: Record<string, () => Promise<Case>> = {
  'its holder ends it': async () => {
    const { access_token } = await newCustomer(service);
    const descendant = await descendantOf(access_token);
    const furtherDescendant = await descendantOf(descendant);
    return {
      ended: [descendant, furtherDescendant],
      valid: [access_token],
      event: () => service.send('DELETE', TOKEN, bearer(descendant)),
      reasons: ['revoked', 'ancestor_revoked'],
    };
  },
  'an agent’s token ends, from which it descends': async () => {
    const agentToken = await issueAgentToken(service);
    const ofAgent = await customerTokenOf(agentToken);
    return {
      ended: [agentToken, ofAgent, await descendantOf(ofAgent)],
      valid: [await issueAgentToken(service), (await newCustomer(service)).access_token],
      event: () => service.send('DELETE', '/v2/token', bearer(agentToken)),
      reasons: ['revoked', 'ancestor_revoked', 'ancestor_revoked'],
    };
  },
  'all sessions of its customer end': async () => {
    const { access_token } = await newCustomer(service);
    return {
      ended: [access_token, await descendantOf(access_token)],
      valid: [(await newCustomer(service)).access_token],
      event: () => endSessions(service, access_token),
      reasons: ['customer_generation', 'customer_generation'],
    };
  },
  'its customer is erased': async () => {
    const { access_token, entity_id } = await newCustomer(service);
    return {
      ended: [access_token],
      valid: [(await newCustomer(service)).access_token],
      event: () => service.admin('DELETE', `/admin/identities/${entity_id}`),
      reasons: ['customer_generation'],
    };
  },
  'its agent gets a new password': async () => {
    const { path, email } = await newAgent();
    const agentToken = await issueAgentToken(service, { email });
    const ofAgent = await customerTokenOf(agentToken);
    return {
      ended: [agentToken, ofAgent, await descendantOf(ofAgent)],
      valid: [(await newCustomer(service)).access_token],
      event: () => service.admin('PATCH', path, { password: 'a new password of the agent' }),
      reasons: ['agent_generation', 'agent_generation', 'agent_generation'],
    };
  },
  'its agent is deleted': async () => {
    const { path, email } = await newAgent();
    const agentToken = await issueAgentToken(service, { email });
    return {
      ended: [agentToken, await customerTokenOf(agentToken)],
      valid: [await issueAgentToken(service)],
      event: () => service.admin('DELETE', path),
      reasons: [],
    };
  },
  'its client is deleted': async () => {
    const { path, clientId } = await newClient();
    const { body } = await service.post(TOKEN, cookieBody({ client_id: clientId }));
    return {
      ended: [body.access_token],
      valid: [(await newCustomer(service)).access_token],
      event: () => service.admin('DELETE', path),
      reasons: ['client_revoked'],
    };
  },
};

describe('token-verifier rejects a token, as the service does, after', () => {
  it.each(Object.entries(CASES))('%s', async (_, prepare) => {
    const { ended, valid, event, reasons } = await prepare();
    expect(await Promise.all([...ended, ...valid].map(decision))).toEqual([...ended, ...valid].map(() => 'valid'));
    expect((await event()).status).toBeLessThan(300);
    expect(await Promise.all(ended.map(isActive))).toEqual(ended.map(() => false));
    await vi.waitFor(async () => expect(await Promise.all(ended.map(decision))).not.toContain('valid'), 30_000);
    if (reasons.length > 0) expect(await Promise.all(ended.map(decision))).toEqual(reasons);
    expect(await Promise.all(valid.map(decision))).toEqual(valid.map(() => 'valid'));
    expect(await Promise.all(valid.map(isActive))).toEqual(valid.map(() => true));
  });
});

describe('token-verifier accepts', () => {
  it('a token that a customer requests after all its sessions ended', async () => {
    const { access_token, entity_id } = await newCustomer(service);
    await endSessions(service, access_token);
    await vi.waitFor(async () => expect(await decision(access_token)).toBe('customer_generation'), 30_000);
    const agentToken = await issueAgentToken(service);
    const { body } = await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agentToken));
    expect(await decision(body.access_token)).toBe('valid');
  });

  it('tokens whose iat is at most 30 s ahead of its clock, and rejects them from their exp on', async () => {
    const { access_token } = await newCustomer(service);
    const behind = verifierOf(service, { onStale: 'accept' }, { skewSeconds: -29 });
    const furtherBehind = verifierOf(service, { onStale: 'accept' }, { skewSeconds: -40 });
    const ahead = verifierOf(service, { onStale: 'accept' }, { skewSeconds: 28_800 });
    await behind.ready();
    expect(await decisionOf(behind, access_token)).toBe('valid');
    expect(await decisionOf(furtherBehind, access_token)).toBe('not_yet_valid');
    expect(await decisionOf(ahead, access_token)).toBe('expired');
    for (const verifier of [behind, furtherBehind, ahead]) verifier.close();
  });
});
