import { beforeEach, describe, expect, it } from 'vitest';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { PROOF, PROOF_SCOPE, Proofs, proofExtension } from '../../support/proof-extension.js';
import { ACME_AGENT, ACME_SITE, RIVAL, RIVAL_AGENT, RIVAL_SITE, testRegistry } from '../../support/test-registry.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const OTHER_AGENT = { email: 'kiosk@acme.example', password: 'the pass phrase of a kiosk' };

const service = useService(() => {
  const registry = testRegistry();
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
const rivalAgentToken = () => issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
const kioskToken = () => issueAgentToken(service, { email: OTHER_AGENT.email, scope: PROOF_SCOPE });
const lineageOf = (token: string) => {
  const { gen, ancestors, transfers, act } = claimsOf(token);
  return { gen, ancestors, transfers, act };
};

describe('a token by a proof of a grant', () => {
  it('descends from the token of the customer that created the proof, as after an identity transfer', async () => {
    const moved = (await redeem(service, await transferToken(service, root.access_token))).body.access_token;
    const token = await tokenOf(await createProof(root.access_token));
    expect(lineageOf(token)).toEqual({ gen: 0, ancestors: [claimsOf(root.access_token).jti], transfers: 1 });
    expect(lineageOf(token)).toEqual(lineageOf(moved));
    await service.send('DELETE', TOKEN, bearer(root.access_token));
    expect(await infoStatus(service, token)).toBe(401);
  });

  it('descends from the token of the agent that created the proof, as after an identity transfer', async () => {
    const agent = await issueAgentToken(service);
    const more = { bearer_type: 'agent', customer_id: root.entity_id };
    const moved = (await redeem(service, await transferToken(service, agent, more))).body.access_token;
    const token = await tokenOf(await createProof(agent, root.entity_id));
    expect(lineageOf(token)).toMatchObject({ act: { client_id: ACME_SITE, gen: 0 }, transfers: 1 });
    expect(lineageOf(token)).toEqual(lineageOf(moved));
  });

  it('keeps the agent that obtained the token of the customer', async () => {
    const agent = await issueAgentToken(service);
    const { entity_id } = root;
    const first = (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token;
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
    await service.send('DELETE', TOKEN, bearer(root.access_token));
    await service.send('DELETE', '/v2/token', bearer(agent));
    for (const code of codes) expectInvalidGrant(await redeemProof(code));
  });

  it('is refused for another customer and for another organization', async () => {
    const other = (await newCustomer(service)).entity_id;
    const rival = (
      await service.post(TOKEN, agentTokenBody({ client_id: RIVAL_SITE }), bearer(await rivalAgentToken()))
    ).body.entity_id;
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
    service.clock.advance({ seconds: 86_400 });
    expect((await redeemProof(code)).status).toBe(200);
    service.clock.advance({ seconds: 1 });
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
