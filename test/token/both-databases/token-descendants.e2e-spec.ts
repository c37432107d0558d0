import { beforeEach, describe, expect, it } from 'vitest';
import { agentTokenBody, claimsOf, newAgent, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { PROOF, PROOF_SCOPE, Proofs, proofExtension } from '../../support/proof-extension.js';
import { moveOf, remember, rememberingRegistry } from '../../support/remember.js';
import { ACME, ACME_AGENT, ACME_SITE, RIVAL, RIVAL_AGENT, RIVAL_SITE } from '../../support/test-registry.js';
import {
  agentTokenPair,
  infoStatus,
  newCustomer,
  redeem,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const PASSWORD = 'a password of more than 8 characters';

const OTHER_AGENT = { email: 'kiosk@acme.example', password: 'the pass phrase of a kiosk' };

const service = useService(() => {
  const registry = rememberingRegistry();
  const scopes = ['customers:own', PROOF_SCOPE];
  registry.clients = registry.clients.map((client) => ({ ...client, scopes }));
  const [acmeAgent] = registry.agents;
  registry.agents = [...registry.agents, { ...acmeAgent, ...OTHER_AGENT }].map((agent) => ({ ...agent, scopes }));
  return { ...proofExtension, registry };
});
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

  it.each([0, 2])('ends at any depth with its ancestor number %i, whose own ancestors stay valid', async (ended) => {
    const tokens = await chain(4);
    expect((await revoke(tokens[ended] as string)).status).toBe(200);
    expect(await Promise.all(tokens.map(isValid))).toEqual(tokens.map((_, depth) => depth < ended));
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

  it('stays ended when an agent with the same email is created again, because its id cannot return', async () => {
    const { id, email, path } = await newAgent(service);
    const agent = await issueAgentToken(service, { email });
    const token = (await byAgent(agent)).access_token;
    expect((await service.admin('DELETE', path)).status).toBe(200);
    const again = { email, name: 'Again', password: PASSWORD, organization_id: ACME, scopes: [] };
    expectInvalidRequest(await service.admin('POST', '/admin/agents', { ...again, id }), /^id: /);
    const created = await service.admin('POST', '/admin/agents', again);
    expect(created.status).toBe(201);
    expect(created.body.id).not.toBe(id);
    expect(await isValid(token)).toBe(false);
    expect((await service.post(TOKEN, agentTokenBody(), bearer(agent))).status).toBe(401);
  });
});

const createProof = async (token: string, customer_id?: string): Promise<string> => {
  const { status, body } = await service.post(PROOF, { customer_id }, bearer(token));
  expect(status).toBe(200);
  return body.code;
};
const redeemProof = (code: string, more: object = {}) =>
  service.post(TOKEN, { grant_type: 'test_proof', client_id: ACME_SITE, code, ...more });
const redeemAsAgent = (token: string, code: string) =>
  service.post(TOKEN, { grant_type: 'test_proof_of_agent', client_id: ACME_SITE, code }, bearer(token));
const tokenOf = async (code: string): Promise<string> => (await redeemProof(code)).body.access_token;
const kioskToken = () => issueAgentToken(service, { email: OTHER_AGENT.email, scope: PROOF_SCOPE });
const lineageOf = (token: string) => {
  const { gen, ancestors, transfers, act } = claimsOf(token);
  return { gen, ancestors, transfers, act };
};

describe('a token by a proof of a grant', () => {
  it('descends from the token of the customer that created the proof, as after an identity transfer', async () => {
    const moved = await transfer(root.access_token);
    const token = await tokenOf(await createProof(root.access_token));
    expect(lineageOf(token)).toEqual({ gen: 0, ancestors: [claimsOf(root.access_token).jti], transfers: 1 });
    expect(lineageOf(token)).toEqual(lineageOf(moved));
    await revoke(root.access_token);
    expect(await isValid(token)).toBe(false);
  });

  it('descends from the token of the agent that created the proof, as after an identity transfer', async () => {
    const agent = await issueAgentToken(service);
    const moved = await transfer(agent, { bearer_type: 'agent', customer_id: root.entity_id });
    const token = await tokenOf(await createProof(agent, root.entity_id));
    expect(lineageOf(token)).toMatchObject({ act: { client_id: ACME_SITE, gen: 0 }, transfers: 1 });
    expect(lineageOf(token)).toEqual(lineageOf(moved));
  });

  it('keeps the agent that obtained the token of the customer', async () => {
    const agent = await issueAgentToken(service);
    const first = (await byAgent(agent, { entity_id: root.entity_id })).access_token;
    const token = await tokenOf(await createProof(first));
    expect(lineageOf(token)).toMatchObject({ act: claimsOf(first).act, transfers: 1 });
    expect(lineageOf(token).ancestors).toEqual([claimsOf(agent).jti, claimsOf(first).jti]);
  });

  it('is not renewed more than 8 times', async () => {
    let token = root.access_token;
    for (let proof = 0; proof < 8; proof++) token = await tokenOf(await createProof(token));
    expect(claimsOf(token).transfers).toBe(8);
    expectInvalidGrant(await redeemProof(await createProof(token)));
  });

  it('is for every customer of the organization if the agent named none', async () => {
    const code = await createProof(await issueAgentToken(service));
    const { status, body } = await redeemProof(code, { result_entity_id: root.entity_id });
    expect(status).toBe(200);
    expect(claimsOf(body.access_token)).toMatchObject({ sub: root.entity_id, transfers: 1 });
  });

  it('carries the generation that the agent has read, or that the grant has read of a customer', async () => {
    const agent = await issueAgentToken(service);
    const [named, unnamed] = [await createProof(agent, root.entity_id), await createProof(agent)];
    await endSessionsAsOperator(service, ADMIN_TOKEN, root.entity_id);
    expectInvalidGrant(await redeemProof(named));
    const of = (result_generation?: string) =>
      redeemProof(unnamed, { result_entity_id: root.entity_id, result_generation });
    expectInvalidGrant(await of('0'));
    expect(claimsOf((await of('1')).body.access_token).gen).toBe(1);
    expect(claimsOf((await of()).body.access_token).gen).toBe(1);
  });

  it('descends from both tokens if an agent redeems the proof of a customer', async () => {
    const kiosk = await kioskToken();
    const token = (await redeemAsAgent(kiosk, await createProof(root.access_token))).body.access_token;
    const ancestors = [kiosk, root.access_token].map((each) => claimsOf(each).jti);
    expect(lineageOf(token)).toMatchObject({ ancestors, transfers: 1, act: { sub: claimsOf(kiosk).sub } });
  });

  it('begins a chain of its own if an agent redeems its own proof: 10 devices of one do not limit another', async () => {
    const [creator, redeemer] = [
      await issueAgentToken(service),
      await issueAgentToken(service, { email: ACME_AGENT.email, scope: PROOF_SCOPE }),
    ];
    const next = async () =>
      (await redeemAsAgent(redeemer, await createProof(creator, root.entity_id))).body.access_token;
    const [first, second] = [await next(), await next()];
    expect(lineageOf(first).ancestors).toEqual(expect.arrayContaining([claimsOf(creator).jti, claimsOf(redeemer).jti]));
    for (const token of [...Array(10).fill(first), second])
      expect((await remember(service, await moveOf(service, token))).status).toBe(200);
  });

  it('is refused if an agent redeems the proof of another agent', async () => {
    const code = await createProof(await issueAgentToken(service), root.entity_id);
    expectInvalidGrant(await redeemAsAgent(await kioskToken(), code));
    const own = await issueAgentToken(service, { email: ACME_AGENT.email, scope: PROOF_SCOPE });
    expect((await redeemAsAgent(own, code)).status).toBe(200);
  });

  it('is refused after the token of the customer or of the agent has ended', async () => {
    const agent = await issueAgentToken(service);
    const codes = [await createProof(root.access_token), await createProof(agent, root.entity_id)];
    for (const code of codes) expect((await redeemProof(code)).status).toBe(200);
    await revoke(root.access_token);
    await service.send('DELETE', '/v2/token', bearer(agent));
    for (const code of codes) expectInvalidGrant(await redeemProof(code));
  });

  it('is refused for another customer and for another organization', async () => {
    const other = (await newCustomer(service)).entity_id;
    const rivalAgent = await issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
    const rival = (await byAgent(rivalAgent, { client_id: RIVAL_SITE })).entity_id;
    const [ofCustomer, agent] = [await createProof(root.access_token), await issueAgentToken(service)];
    const [ofAgent, ofAny] = [await createProof(agent, root.entity_id), await createProof(agent)];
    for (const code of [ofCustomer, ofAgent]) {
      expect((await redeemProof(code)).status).toBe(200);
      expectInvalidGrant(await redeemProof(code, { result_entity_id: other }));
    }
    expect((await redeemProof(ofAny, { result_entity_id: other })).status).toBe(200);
    expectInvalidGrant(await redeemProof(ofAny, { result_entity_id: rival }));
    const inRival = { client_id: RIVAL_SITE, result_organization_id: RIVAL };
    for (const code of [ofCustomer, ofAgent, ofAny])
      for (const result_entity_id of [root.entity_id, rival])
        expectInvalidGrant(await redeemProof(code, { ...inRival, result_entity_id }));
  });

  it('is refused 86,400 s after the proof was created, and not before', async () => {
    const code = await createProof(root.access_token);
    service.clock.advance({ seconds: 86_380 });
    expect((await redeemProof(code)).status).toBe(200);
    service.clock.advance({ seconds: 21 });
    expectInvalidGrant(await redeemProof(code));
  });

  it('is refused if the grant returns a text that the service did not write', async () => {
    const code = await createProof(root.access_token);
    const other = await newCustomer(service);
    const otherCode = await createProof(other.access_token);
    const [descent, foreign] = [...service.application.get(Proofs, { strict: false }).byHash.values()]
      .slice(-2)
      .map((proof) => proof.descent) as [string, string];
    const content = foreign.slice(foreign.indexOf('.') + 1);
    const forged = [
      ...['.', 'x', content, `.${content}`, `${descent.split('.')[0]}.${content}`],
      ...[`${descent} `, descent.replace('"at":', '"at":9'), root.access_token],
      ...[foreign, descent.slice(0, 255)],
    ];
    expect((await redeemProof(code, { result_descent: descent })).status).toBe(200);
    expect((await redeemProof(otherCode)).status).toBe(200);
    for (const result_descent of forged) expectInvalidGrant(await redeemProof(code, { result_descent }));
  });
});
