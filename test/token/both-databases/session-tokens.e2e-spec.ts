import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { agentTokenBody, claimsOf, newAgent, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { PROOF, PROOF_SCOPE, Proofs, proofExtension } from '../../support/proof-extension.js';
import { rememberingRegistry } from '../../support/remember.js';
import { TestIssuer } from '../../support/test-issuer.js';
import { ACME, ACME_AGENT, ACME_SITE, RIVAL, RIVAL_AGENT, RIVAL_SITE } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
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

const UUID = expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
/** The session of a proof: a hash of the id that the extension stores. */
const HASH = expect.stringMatching(/^[\da-f]{64}$/);
const PASSWORD = 'a password of more than 8 characters';

const OTHER_AGENT = { email: 'kiosk@acme.example', password: 'the pass phrase of a kiosk' };

let idp: TestIssuer;
afterAll(() => idp?.stop());
const service = useService(async () => {
  idp = await TestIssuer.start();
  const trusted = idp.trust({ scopes: ['customers:own', PROOF_SCOPE] });
  const registry = rememberingRegistry();
  const scopes = ['customers:own', PROOF_SCOPE];
  registry.clients = registry.clients.map((client) => ({ ...client, scopes }));
  const [acmeAgent] = registry.agents;
  registry.agents = [...registry.agents, { ...acmeAgent, ...OTHER_AGENT }].map((agent) => ({ ...agent, scopes }));
  return { ...proofExtension, registry, environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify([trusted]) } };
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

const sidOf = (token: string) => claimsOf(token).sid;

/** The tokens of a chain of transfers, the first token first. */
async function chain(length: number, first = root.access_token): Promise<string[]> {
  const tokens = [first];
  for (let transfers = 0; transfers < length; transfers++) tokens.push(await transfer(tokens.at(-1) as string));
  return tokens;
}

describe('a token that an identity transfer gave', () => {
  it('names a session of its own, the epoch of the session and the generation of the customer', async () => {
    const tokens = await chain(3);
    for (const token of tokens) {
      expect(claimsOf(token)).toMatchObject({ jti: UUID, sid: UUID, ep: 0, gen: claimsOf(root.access_token).gen });
      for (const claim of ['ancestors', 'transfers', 'act']) expect(claimsOf(token)).not.toHaveProperty(claim);
    }
    expect(new Set(tokens.map(sidOf)).size).toBe(tokens.length);
  });

  it('names the same session as each further token of a browser, with another jti', async () => {
    const first = await service.visit();
    const next = (await service.visit(cookieHeader(first))).body.access_token;
    expect(sidOf(next)).toBe(sidOf(first.body.access_token));
    expect(claimsOf(next).jti).not.toBe(claimsOf(first.body.access_token).jti);
  });

  it.each([0, 2])(
    'ends at any depth with token number %i of the chain, and earlier tokens stay valid',
    async (ended) => {
      const tokens = await chain(4);
      expect((await revoke(tokens[ended] as string)).status).toBe(200);
      expect(await Promise.all(tokens.map(isValid))).toEqual(tokens.map((_, depth) => depth < ended));
    },
  );

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
  it('names the agent and its session, and so does everything that is made with the customer token', async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    const refreshed = (await refresh(service, refresh_token)).body.access_token;
    const { sub, client_id, sid } = claimsOf(refreshed) as Record<string, string>;
    const token = (await byAgent(refreshed)).access_token;
    const act = { sub, client_id, sid, ep: 0 };
    expect(claimsOf(token).act).toEqual(act);
    for (const claim of ['sid', 'ep']) expect(claimsOf(token)).not.toHaveProperty(claim);
    const further = await transfer(token);
    expect(claimsOf(further)).toMatchObject({ act, sid: UUID, ep: 0 });
    expect(claimsOf(await transfer(further)).act).toEqual(act);
    const moved = await transfer(access_token, { bearer_type: 'agent', customer_id: root.entity_id });
    const own = claimsOf(access_token);
    expect(claimsOf(moved).act).toEqual({ ...act, client_id: own.client_id, sid: own.sid });
    expect(claimsOf(root.access_token)).not.toHaveProperty('act');
  });

  it('names the trusted issuer of an agent, and no generation', async () => {
    const agent = await idp.sign(service.clock.now(), { sub: 'agent-of-idp', scope: 'customers:own' });
    const token = (await byAgent(agent)).access_token;
    expect(claimsOf(token).act).toEqual(expect.objectContaining({ sub: 'agent-of-idp', iss: idp.issuer }));
    expect(claimsOf(token).act).not.toHaveProperty('gen');
    expect(await isValid(token)).toBe(true);
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

const proofs = () => service.application.get(Proofs, { strict: false });
/** The ids that the extension has stored, in the order of the proofs. */
const storedProofs = () => [...proofs().byHash.values()].map(({ proof }) => proof);
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
const endSessionsOfRoot = () => endSessionsAsOperator(service, ADMIN_TOKEN, root.entity_id);
const endAgentToken = (token: string) => service.send('DELETE', '/v2/token', bearer(token));

describe('a token by a proof of a grant', () => {
  it('has a session that ends with the token of the customer that created the proof, as after a transfer', async () => {
    const token = await tokenOf(await createProof(root.access_token));
    const moved = await transfer(token);
    expect(claimsOf(token)).toMatchObject({ sid: HASH, ep: 0, gen: claimsOf(root.access_token).gen });
    expect(sidOf(token)).not.toBe(sidOf(root.access_token));
    expect(claimsOf(token)).not.toHaveProperty('act');
    await revoke(root.access_token);
    expect([await isValid(token), await isValid(moved)]).toEqual([false, false]);
  });

  it('ends alone, with what was made with it, and the token that created the proof stays valid', async () => {
    const [token, other] = [
      await tokenOf(await createProof(root.access_token)),
      await tokenOf(await createProof(root.access_token)),
    ];
    const moved = await transfer(token);
    await revoke(token);
    const states = await Promise.all([token, moved, other, root.access_token].map(isValid));
    expect(states).toEqual([false, false, true, true]);
  });

  it('names the agent that created the proof, and ends with the token of the agent, as after a transfer', async () => {
    const agent = await issueAgentToken(service);
    const moved = await transfer(agent, { bearer_type: 'agent', customer_id: root.entity_id });
    const token = await tokenOf(await createProof(agent, root.entity_id));
    expect(claimsOf(token).act).toMatchObject({ client_id: ACME_SITE, ep: 0, sid: claimsOf(agent).sid });
    expect(claimsOf(token).act).toEqual(claimsOf(moved).act);
    await endAgentToken(agent);
    expect([await isValid(token), await isValid(moved)]).toEqual([false, false]);
  });

  it.each<[string, (agent: string, first: string) => Promise<unknown>]>([
    ['the agent’s token', (agent) => endAgentToken(agent)],
    ['the token that created the proof', (_, first) => revoke(first)],
  ])('keeps the agent that obtained the token of the customer, and ends with %s', async (_, end) => {
    const agent = await issueAgentToken(service);
    const first = (await byAgent(agent, { entity_id: root.entity_id })).access_token;
    const token = await tokenOf(await createProof(first));
    expect(claimsOf(token).act).toEqual(claimsOf(first).act);
    await end(agent, first);
    expect(await isValid(token)).toBe(false);
  });

  it('is not renewed more than 8 times', async () => {
    let token = root.access_token;
    for (let proof = 0; proof < 8; proof++) token = await tokenOf(await createProof(token));
    expect(await isValid(token)).toBe(true);
    expectInvalidGrant(await service.post(PROOF, {}, bearer(token)));
  });

  it('is for every customer of the organization if the agent named none', async () => {
    const code = await createProof(await issueAgentToken(service));
    const { status, body } = await redeemProof(code, { result_entity_id: root.entity_id });
    expect(status).toBe(200);
    expect(claimsOf(body.access_token)).toMatchObject({ sub: root.entity_id, sid: HASH });
  });

  it('carries the generation that the agent has read, or that the grant has read of a customer', async () => {
    const agent = await issueAgentToken(service);
    const [named, unnamed] = [await createProof(agent, root.entity_id), await createProof(agent)];
    await endSessionsAsOperator(service, ADMIN_TOKEN, root.entity_id);
    expectInvalidGrant(await redeemProof(named));
    const of = (result_generation?: string) =>
      redeemProof(unnamed, { result_entity_id: root.entity_id, result_generation });
    const { gen: earlier } = claimsOf(root.access_token) as { gen: number };
    expectInvalidGrant(await of(`${earlier}`));
    const { gen } = claimsOf((await of()).body.access_token) as { gen: number };
    expect(gen).toBeGreaterThan(earlier);
    expect(claimsOf((await of(`${gen}`)).body.access_token).gen).toBe(gen);
  });

  it.each<[string, (agent: string) => Promise<unknown>]>([
    ['the token of the customer', () => revoke(root.access_token)],
    ['the token of the agent', (agent) => endAgentToken(agent)],
  ])('that an agent redeemed of a customer names the agent, and ends with %s', async (_, end) => {
    const kiosk = await kioskToken();
    const token = (await redeemAsAgent(kiosk, await createProof(root.access_token))).body.access_token;
    expect(claimsOf(token).act).toMatchObject({ sub: claimsOf(kiosk).sub, sid: claimsOf(kiosk).sid });
    await end(kiosk);
    expect(await isValid(token)).toBe(false);
  });

  it('ends with the token with which an agent created and redeemed its own proof', async () => {
    const agent = await issueAgentToken(service, { email: ACME_AGENT.email, scope: `customers:own ${PROOF_SCOPE}` });
    const token = (await redeemAsAgent(agent, await createProof(agent, root.entity_id))).body.access_token;
    expect(await isValid(token)).toBe(true);
    await endAgentToken(agent);
    expect(await isValid(token)).toBe(false);
  });

  it('is refused if a later token of the session that created the proof was ended', async () => {
    const first = await service.visit();
    const code = await createProof(first.body.access_token);
    service.clock.advance({ seconds: 61 });
    await revoke((await service.visit(cookieHeader(first))).body.access_token);
    expectInvalidGrant(await redeemProof(code));
  });

  it('is refused if an agent redeems the proof of another agent', async () => {
    const code = await createProof(await issueAgentToken(service), root.entity_id);
    expectInvalidGrant(await redeemAsAgent(await kioskToken(), code));
  });

  it('is refused if an agent of a trusted issuer redeems the proof of an agent of this service with the same id', async () => {
    const agent = await issueAgentToken(service);
    const code = await createProof(agent, root.entity_id);
    const namesake = await idp.sign(service.clock.now(), { sub: claimsOf(agent).sub, scope: PROOF_SCOPE });
    const own = await createProof(root.access_token);
    expect((await redeemAsAgent(namesake, own)).status, 'the issuer is trusted').toBe(200);
    expectInvalidGrant(await redeemAsAgent(namesake, code));
  });

  it.each<[string, (agent: string, entityId: string) => Promise<string>, (agent: string) => Promise<unknown>]>([
    ['the customer ends its token', () => createProof(root.access_token), () => revoke(root.access_token)],
    ['the sessions of the customer end', () => createProof(root.access_token), endSessionsOfRoot],
    ['the customer is erased', () => createProof(root.access_token), () => service.erase(root.entity_id)],
    ['the agent that created it ends its token', createProof, endAgentToken],
    ['the sessions of the customer of an agent’s proof end', createProof, endSessionsOfRoot],
    ['the agent that created it for no certain customer ends its token', (agent) => createProof(agent), endAgentToken],
    [
      'the agent that obtained the token of the customer ends its token',
      async (agent, entity_id) => createProof((await byAgent(agent, { entity_id })).access_token),
      endAgentToken,
    ],
  ])('is refused if %s before the redemption', async (_, create, end) => {
    const agent = await issueAgentToken(service);
    const [redeemed, open] = [await create(agent, root.entity_id), await create(agent, root.entity_id)];
    const ofRoot = { result_entity_id: root.entity_id };
    expect((await redeemProof(redeemed, ofRoot)).status).toBe(200);
    expect(((await end(agent)) as TestResponse).status).toBe(200);
    for (const code of [open, redeemed]) expectInvalidGrant(await redeemProof(code, ofRoot));
  });

  it.each<[string, (agent: string) => Promise<unknown>, boolean]>([
    ['the customer ends its token', () => revoke(root.access_token), false],
    [
      'the customer ends its token, which has expired meanwhile',
      () => {
        service.clock.advance({ seconds: 28_801 });
        return revoke(root.access_token);
      },
      false,
    ],
    ['the sessions of the customer end', endSessionsOfRoot, false],
    ['the agent ends its token', endAgentToken, true],
  ])('is not created if %s after the check of the token', async (_, end, isOfAgent) => {
    const agent = await issueAgentToken(service);
    const [token, customer_id] = isOfAgent ? [agent, root.entity_id] : [root.access_token, undefined];
    expect((await service.post(PROOF, { customer_id }, bearer(token))).status).toBe(200);
    vi.spyOn(proofs(), 'before').mockImplementationOnce(async () => {
      expect(((await end(agent)) as TestResponse).status).toBe(200);
    });
    expect((await service.post(PROOF, { customer_id }, bearer(token))).status).toBe(401);
  });

  it('is one of several of a session, which end together, if the grant redeems a proof several times', async () => {
    const code = await createProof(root.access_token);
    const tokens = [await tokenOf(code), await tokenOf(code)];
    const moved = await transfer(tokens[0] as string);
    expect(sidOf(tokens[0] as string)).toBe(sidOf(tokens[1] as string));
    expect((await revoke(tokens[1] as string)).status).toBe(200);
    expect(await Promise.all([...tokens, moved, root.access_token].map(isValid))).toEqual([false, false, false, true]);
    expectInvalidGrant(await redeemProof(code));
  });

  it('may be transferred until it expires, and the proof ends with the token that created it', async () => {
    const ofAgent = (await byAgent(await issueAgentToken(service), { entity_id: root.entity_id })).access_token;
    const code = await createProof(ofAgent);
    service.clock.advance({ seconds: 28_790 });
    const token = await tokenOf(code);
    service.clock.advance({ seconds: 28_790 });
    expect(await isValid(await transfer(token))).toBe(true);
    expectInvalidGrant(await redeemProof(code));
  });

  it('is for one customer if the agent named none: a second one is refused, also at the same time', async () => {
    const agent = await issueAgentToken(service);
    const customers = [root.entity_id, (await newCustomer(service)).entity_id];
    for (let round = 0; round < 8; round++) {
      const code = await createProof(agent);
      const of = (result_entity_id?: string) => redeemProof(code, { result_entity_id });
      const responses = await Promise.all(customers.map(of));
      const [given, ...more] = responses.filter(({ status }) => status === 200);
      expect(more).toEqual([]);
      for (const response of responses) if (response !== given) expectInvalidGrant(response);
      for (const id of customers) expect((await of(id)).status).toBe(id === given?.body.entity_id ? 200 : 400);
    }
  });

  it('is for one agent if agents redeem a proof of a customer: a second one is refused, also at the same time', async () => {
    const agents = [await kioskToken(), await kioskToken()];
    for (let round = 0; round < 8; round++) {
      const code = await createProof(root.access_token);
      const responses = await Promise.all(agents.map((agent) => redeemAsAgent(agent, code)));
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 400]);
      const [given] = responses.filter(({ status }) => status === 200) as [TestResponse];
      const { sid } = claimsOf(given.body.access_token).act as { sid: string };
      for (const agent of agents)
        expect((await redeemAsAgent(agent, code)).status).toBe(claimsOf(agent).sid === sid ? 200 : 400);
    }
  });

  it('is refused after the token of the customer or of the agent has ended', async () => {
    const agent = await issueAgentToken(service);
    const codes = [await createProof(root.access_token), await createProof(agent, root.entity_id)];
    for (const code of codes) expect((await redeemProof(code)).status).toBe(200);
    await revoke(root.access_token);
    await endAgentToken(agent);
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
    const open = await createProof(agent);
    expectInvalidGrant(await redeemProof(open, { ...inRival, result_entity_id: rival }));
    expect((await redeemProof(open, { result_entity_id: other })).status).toBe(200);
  });

  it('is refused 86,400 s after the proof was created, and not before', async () => {
    const code = await createProof(root.access_token);
    service.clock.advance({ seconds: 86_380 });
    expect((await redeemProof(code)).status).toBe(200);
    service.clock.advance({ seconds: 21 });
    expectInvalidGrant(await redeemProof(code));
  });

  it('is refused if the grant returns a text that the service did not make, or a text that a caller has', async () => {
    const code = await createProof(root.access_token);
    const proof = storedProofs().at(-1);
    const token = await tokenOf(code);
    const foreign = await createProof((await newCustomer(service)).access_token);
    const foreignProof = storedProofs().at(-1);
    expect((await redeemProof(foreign)).status).toBe(200);
    const { sid, jti } = claimsOf(token) as Record<string, string>;
    const unknown = [
      ...['.', 'x', '%', randomUUID(), `${proof} `, ` ${proof}`, proof?.toUpperCase(), proof?.slice(0, 35)],
      ...[sid, jti, sidOf(root.access_token), root.access_token, foreignProof, await transferToken(service, token)],
    ];
    for (const result_proof of unknown) expectInvalidGrant(await redeemProof(code, { result_proof }));
    expect((await redeemProof(code, { result_proof: proof })).status).toBe(200);
  });
});
