import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { agentTokenBody, changePassword, claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { ACME, ACME_AGENT, ACME_SITE, RIVAL, testRegistry } from '../../support/test-registry.js';
import { request, startTestService, type TestService } from '../../support/test-service.js';
import {
  agentTokenPair,
  ageRedemption,
  infoStatus,
  newCustomer,
  redeem,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-the-descendants-test';
const PASSWORD = 'a password of more than 8 characters';

const registry = testRegistry();
let service: TestService;
let root: { entity_id: string; access_token: string };
beforeAll(async () => {
  service = await startTestService({ registry, environment: { ADMIN_TOKEN } });
});
beforeEach(async () => {
  root = await newCustomer(service);
});
afterEach(() => service.clock.reset());
afterAll(() => service?.stop());

const transfer = async (token: string, more: object = {}) =>
  (await redeem(service, await transferToken(service, token, more))).body.access_token as string;
const revoke = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const isValid = async (token: string) => (await infoStatus(service, token)) === 200;
const byAgent = async (token: string, more: object = {}) =>
  (await service.post(TOKEN, agentTokenBody(more), bearer(token))).body;

const asOperator = (method: string, path: string, body?: object) =>
  manage(service, method, path, bearer(ADMIN_TOKEN), body);

/** Revocation (RFC 7009) with the operator's token. */
function revokeAsOperator(token: string) {
  const headers = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams({ token }).toString();
  return request(`${service.managementUrl}/oauth2/revoke`, { method: 'POST', headers, body });
}

/** The tokens of a chain of transfers, the first token first. */
async function chain(length: number, first = root.access_token): Promise<string[]> {
  const tokens = [first];
  for (let link = 0; link < length; link++) tokens.push(await transfer(tokens.at(-1) as string));
  return tokens;
}

describe('a token that an identity transfer gave', () => {
  it('names every token that it descends from, and how many transfers led to it', async () => {
    const tokens = await chain(3);
    const ids = tokens.map((token) => claimsOf(token).jti);
    expect(claimsOf(tokens[3] as string)).toMatchObject({ ancestors: ids.slice(0, 3), transfers: 3, gen: 0 });
    expect(claimsOf(tokens[0] as string)).not.toHaveProperty('ancestors');
  });

  it.each([0, 1, 2])('ends at any depth with its ancestor number %i, whose own ancestors stay valid', async (ended) => {
    const tokens = await chain(4);
    expect((await revoke(tokens[ended] as string)).status).toBe(200);
    expect(await Promise.all(tokens.map(isValid))).toEqual(tokens.map((_, depth) => depth < ended));
  });

  it('ends when the operator ends its ancestor', async () => {
    const tokens = await chain(2);
    expect((await revokeAsOperator(root.access_token)).status).toBe(200);
    expect(await Promise.all(tokens.map(isValid))).toEqual([false, false, false]);
  });

  it('ends with its ancestor when the transfer token of the ancestor is replayed', async () => {
    const code = await transferToken(service, root.access_token);
    const first = (await redeem(service, code)).body.access_token;
    const next = await transfer(await transfer(first));
    await ageRedemption(service, code, 3);
    expectInvalidGrant(await redeem(service, code));
    expect([await isValid(first), await isValid(next), await isValid(root.access_token)]).toEqual([false, false, true]);
  });

  it('does not end when its ancestors only expire', async () => {
    service.clock.advance({ seconds: 28_000 });
    const code = await transferToken(service, root.access_token);
    const token = (await redeem(service, code)).body.access_token;
    service.clock.advance({ seconds: 1_000 });
    expect(await isValid(root.access_token)).toBe(false);
    expect(await isValid(token)).toBe(true);
  });

  it('cannot be created with an ended token, or redeemed after that token has ended', async () => {
    const [, child] = (await chain(1)) as [string, string];
    const code = await transferToken(service, child);
    await revoke(root.access_token);
    expectInvalidGrant(await redeem(service, code));
    expect((await service.post(TRANSFER, transferBody(), bearer(child))).status).toBe(401);
  });

  it('cannot be transferred again after eight transfers in a chain that began with any kind of token', async () => {
    const agent = await issueAgentToken(service);
    const ofAgent = await byAgent(agent);
    const moved = await transfer(agent, { bearer_type: 'agent', customer_id: root.entity_id });
    for (const [first, length] of [
      [root.access_token, 8],
      [ofAgent.access_token, 8],
      [moved, 7],
    ] as const) {
      const tokens = await chain(length, first);
      expectInvalidGrant(await service.post(TRANSFER, transferBody(), bearer(tokens.at(-1) as string)));
      expect(await isValid(tokens.at(-1) as string)).toBe(true);
    }
  });
});

describe('a customer token that an agent obtained', () => {
  it('names the agent, and its descendants name the same agent', async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    const refreshed = (await refresh(service, refresh_token)).body.access_token;
    const { sub, client_id, jti } = claimsOf(refreshed) as Record<string, string>;
    const token = (await byAgent(refreshed)).access_token;
    const act = { sub, client_id, gen: 0 };
    expect(claimsOf(token)).toMatchObject({ act, ancestors: [jti?.split('.')[0], jti] });
    expect(claimsOf(await transfer(token))).toMatchObject({ act });
    const moved = await transfer(access_token, { bearer_type: 'agent', customer_id: root.entity_id });
    expect(claimsOf(moved)).toMatchObject({
      act: { ...act, client_id: claimsOf(access_token).client_id },
      transfers: 1,
    });
    expect(claimsOf(root.access_token)).not.toHaveProperty('act');
  });

  it('ends with the token of the agent, and with the refresh family of that token', async () => {
    const pair = await agentTokenPair(service);
    const next = (await refresh(service, pair.refresh_token)).body;
    const tokens = [(await byAgent(pair.access_token)).access_token, (await byAgent(next.access_token)).access_token];
    tokens.push(await transfer(tokens[1] as string));
    tokens.push(await transfer(next.access_token, { bearer_type: 'agent', customer_id: root.entity_id }));
    expect((await service.send('DELETE', '/v2/token', bearer(pair.access_token))).status).toBe(200);
    expect(await Promise.all(tokens.map(isValid))).toEqual([false, true, true, true]);
    expect((await revokeAsOperator(next.refresh_token)).status).toBe(200);
    expect(await Promise.all(tokens.map(isValid))).toEqual([false, false, false, false]);
    expect(await isValid(root.access_token)).toBe(true);
  });

  it('does not end with another token of the same agent', async () => {
    const token = (await byAgent(await issueAgentToken(service))).access_token;
    await service.send('DELETE', '/v2/token', bearer(await issueAgentToken(service)));
    expect(await isValid(token)).toBe(true);
  });

  it.each([
    ['is deleted', 'DELETE', undefined],
    ['gets a new password', 'PATCH', { password: 'another password of the agent' }],
    ['moves to another organization', 'PATCH', { organization_id: RIVAL }],
  ])('ends when the agent %s, and so do its descendants', async (_, method, change) => {
    const { id, email } = await newAgent();
    const agent = await issueAgentToken(service, { email });
    const created = await byAgent(agent);
    const tokens = [created.access_token, await transfer(created.access_token)];
    tokens.push(await transfer(agent, { bearer_type: 'agent', customer_id: root.entity_id }));
    expect(await Promise.all(tokens.map(isValid))).toEqual([true, true, true]);
    expect((await asOperator(method, `/admin/agents/${id}`, change)).status).toBe(200);
    expect(await Promise.all(tokens.map(isValid))).toEqual([false, false, false]);
    expect(await isValid(root.access_token)).toBe(true);
  });

  it('stays ended when an agent with the same email is created again, because its id cannot return', async () => {
    const { id, email } = await newAgent();
    const agent = await issueAgentToken(service, { email });
    const token = (await byAgent(agent)).access_token;
    expect((await asOperator('DELETE', `/admin/agents/${id}`)).status).toBe(200);
    const again = { email, name: 'Again', password: PASSWORD, organization_id: ACME, scopes: [] };
    expectInvalidRequest(await asOperator('POST', '/admin/agents', { ...again, id }), /^id: /);
    const created = await asOperator('POST', '/admin/agents', again);
    expect(created.status).toBe(201);
    expect(created.body.id).not.toBe(id);
    expect(await isValid(token)).toBe(false);
    expect((await service.post(TOKEN, agentTokenBody(), bearer(agent))).status).toBe(401);
  });

  it('is valid if it was obtained right after the agent’s password was changed', async () => {
    await changePassword(service, registry, ACME_AGENT.email);
    expect(await isValid((await byAgent(await issueAgentToken(service))).access_token)).toBe(true);
  });
});

describe('deleting a client', () => {
  it('ends the tokens of that client, but not their descendants under another client', async () => {
    const client_id = 'short-lived';
    const entry = { client_id, name: 'Short', client_type: 'web', organization_id: ACME, redirect_uris: [] };
    expect((await asOperator('POST', '/admin/clients', entry)).status).toBe(201);
    const own = await transfer(root.access_token, { client_id: ACME_SITE });
    const code = await transferToken(service, root.access_token, { client_id });
    const token = (await redeem(service, code, { client_id })).body.access_token;
    const onward = await transfer(token);
    expect((await asOperator('DELETE', `/admin/clients/${client_id}`)).status).toBe(200);
    expect([await isValid(token), await isValid(onward), await isValid(own)]).toEqual([false, true, true]);
  });
});

describe('erasing a customer', () => {
  it('ends the customer’s tokens in every chain, and no token of another customer', async () => {
    const tokens = await chain(2);
    tokens.push((await byAgent(await issueAgentToken(service), { entity_id: root.entity_id })).access_token);
    const other = await newCustomer(service);
    await asOperator('DELETE', `/admin/identities/${root.entity_id}`);
    expect(await Promise.all(tokens.map(isValid))).toEqual([false, false, false, false]);
    expect(await isValid(other.access_token)).toBe(true);
  });
});

async function newAgent(): Promise<{ id: string; email: string }> {
  const email = `agent-${service.clock.now()}-${Math.random()}@acme.example`;
  const entry = { email, name: 'New', password: PASSWORD, organization_id: ACME, scopes: ['customers:own'] };
  const { body } = await asOperator('POST', '/admin/agents', entry);
  return { id: body.id, email };
}
