import { beforeEach, describe, expect, it } from 'vitest';
import { agentTokenBody, changePassword, claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { ACME, ACME_AGENT, testRegistry } from '../../support/test-registry.js';
import {
  agentTokenPair,
  infoStatus,
  newCustomer,
  redeem,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const PASSWORD = 'a password of more than 8 characters';

const registry = testRegistry();
const service = useService({ registry });
let root: { entity_id: string; access_token: string };
beforeEach(async () => {
  root = await newCustomer(service);
});

const transfer = async (token: string, more: object = {}) =>
  (await redeem(service, await transferToken(service, token, more))).body.access_token as string;
const revoke = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const isValid = async (token: string) => (await infoStatus(service, token)) === 200;
const byAgent = async (token: string, more: object = {}) =>
  (await service.post(TOKEN, agentTokenBody(more), bearer(token))).body;

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

  it('does not end when its ancestors only expire', async () => {
    service.clock.advance({ seconds: 28_000 });
    const code = await transferToken(service, root.access_token);
    const token = (await redeem(service, code)).body.access_token;
    service.clock.advance({ seconds: 1_000 });
    expect(await isValid(root.access_token)).toBe(false);
    expect(await isValid(token)).toBe(true);
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

  it('does not end with another token of the same agent', async () => {
    const token = (await byAgent(await issueAgentToken(service))).access_token;
    await service.send('DELETE', '/v2/token', bearer(await issueAgentToken(service)));
    expect(await isValid(token)).toBe(true);
  });

  it('stays ended when an agent with the same email is created again, because its id cannot return', async () => {
    const { id, email } = await newAgent();
    const agent = await issueAgentToken(service, { email });
    const token = (await byAgent(agent)).access_token;
    expect((await service.admin('DELETE', `/admin/agents/${id}`)).status).toBe(200);
    const again = { email, name: 'Again', password: PASSWORD, organization_id: ACME, scopes: [] };
    expectInvalidRequest(await service.admin('POST', '/admin/agents', { ...again, id }), /^id: /);
    const created = await service.admin('POST', '/admin/agents', again);
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

async function newAgent(): Promise<{ id: string; email: string }> {
  const email = `agent-${service.clock.now()}-${Math.random()}@acme.example`;
  const entry = { email, name: 'New', password: PASSWORD, organization_id: ACME, scopes: ['customers:own'] };
  const { body } = await service.admin('POST', '/admin/agents', entry);
  return { id: body.id, email };
}
