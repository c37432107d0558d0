import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { agentTokenBody, exchangeCode, refresh } from '../support/agent-tokens.js';
import { JWT_BEARER, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf } from '../support/authorization-page.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { familiesOf, refreshCustomer, type Stay, stay, WITH_REFRESH } from '../support/customer-refresh.js';
import { endSessionsAsOperator } from '../support/end-sessions.js';
import { linksOfBrowser } from '../support/identities.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { PROOF, proofExtension } from '../support/proof-extension.js';
import { moveOf, remember } from '../support/remember.js';
import { ACME, ACME_ORIGIN, ACME_PAGE, ACME_SITE, PUBLIC_SITE, RIVAL, testRegistry } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { ageRedemption, ageRotation, infoStatus, redeem, redeemBody, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, DAY_SECONDS, useService } from '../support/use-service.js';

const IDLE_DAYS = 2;
const SIGN_IN_DAYS = 1;
const PASSWORD = 'a password of the agent';
const ELSEWHERE = { client_id: PUBLIC_SITE, organization_id: RIVAL };
const SALES = `/v2/customer/${ACME}/sales/token`;

const OF_CLIENT = {
  grants: {
    identity_token: { remember: ['browser', 'refresh_token'] },
    [JWT_BEARER]: { remember: ['browser'] },
  },
  grant_types: [...WITH_REFRESH, JWT_BEARER, 'test_proof'],
};

let users: SignInSystem;
const service = useService(async () => {
  const registry = testRegistry();
  const [acme] = registry.organizations;
  users = await SignInSystem.start();
  const settings = { [JWT_BEARER]: users.settings({ sign_in_days: SIGN_IN_DAYS }) };
  Object.assign(acme as object, { idle_days: IDLE_DAYS, grants: settings });
  registry.clients = registry.clients.map((client) => ({ ...client, ...OF_CLIENT }));
  return { ...proofExtension, registry };
});
afterAll(() => users?.issuer.stop());

/** A user who signs in, by default a new one. */
const signInFrom = async (client_id: string, cookie?: string, link: object = {}, sub: string = randomUUID()) => {
  const assertion = await users.assert(service.clock.now(), { sub });
  const parameters = { client_id, remember: 'browser', ...link };
  return signIn(service, assertion, parameters, { origin: ACME_ORIGIN, ...(cookie && { cookie }) });
};

/** A customer with one of each thing, which its own client and agent obtained. */
async function newWorld() {
  const client_id = `client-${randomUUID()}`;
  const client = { client_id, name: 'Own', client_type: 'server', organization_id: ACME, redirect_uris: [ACME_PAGE] };
  await service.admin('POST', '/admin/clients', { ...client, ...OF_CLIENT });
  const email = `${randomUUID()}@acme.example`;
  const entry = { email, name: 'Own', password: PASSWORD, organization_id: ACME };
  const agentId = (await service.admin('POST', '/admin/agents', { ...entry, scopes: ['customers:own'] })).body.id;
  const agentBrowser = new AgentBrowser(service);
  await agentBrowser.signIn({ email, password: PASSWORD });
  const agentPair = (await exchangeCode(service, await codeOf(agentBrowser))).body;
  const agent: string = agentPair.access_token;

  const own = { client_id, redirect_uri: undefined };
  const first = await service.visit(undefined, own);
  const { entity_id, access_token: token } = first.body as { entity_id: string; access_token: string };
  const firstCookie = cookieHeader(first);
  const move = (bearerToken: string, more: object = { client_id }) => moveOf(service, bearerToken, more);
  const rememberFrom = async (bearerToken: string, more: object = { client_id }, cookie?: string) => {
    const moved = await move(bearerToken, more);
    const use = () =>
      remember(service, moved, { cookie, body: { client_id: ACME_SITE, ...('client_id' in more && more) } });
    return { use, code: moved.code, response: await use() };
  };
  const stayFrom = async (bearerToken: string, more: { client_id: string }) => {
    const moved = await move(bearerToken, more);
    const use = () => stay(service, moved, { client_id: more.client_id });
    return { use, code: moved.code, body: (await use()).body as Stay };
  };
  const byAgent = { bearer_type: 'agent', customer_id: entity_id, client_id: ACME_SITE };

  const other = (await service.visit(firstCookie)).body.access_token;
  const elsewhere = (await service.visit(firstCookie, ELSEWHERE)).body.entity_id;
  const code = await transferToken(service, token, { client_id });
  const redeemCode = (of: string) => service.post(TOKEN, redeemBody(of, { client_id }));
  const proofOf = async (bearerToken: string, more: object = {}) =>
    (await service.post(PROOF, more, bearer(bearerToken))).body.code;
  const [proof, agentsProof] = [await proofOf(token), await proofOf(agent, { customer_id: entity_id })];
  const moved = (await redeemCode(await transferToken(service, token, { client_id }))).body.access_token;
  const link = await rememberFrom(token);
  const linkToken = (await service.visit(cookieHeader(link.response), own)).body.access_token;
  const secondLink = await rememberFrom(linkToken);
  const family = await stayFrom(token, { client_id });
  const secondFamily = await stayFrom(family.body.access_token, { client_id });
  const inSales = (await service.post(SALES, cookieBody())).body.access_token;
  const copy = await rememberFrom(inSales, {}, firstCookie);
  const agentsToken = (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token;
  const agentsCode = await transferToken(service, agent, byAgent);
  const agentsLink = await rememberFrom(agent, byAgent);
  const agentsFamily = await stayFrom(agent, byAgent);

  const user = `user-${randomUUID()}`;
  const signedIn = await signInFrom(client_id, undefined, {}, user);
  const isValid = (of: string) => async () => (await infoStatus(service, of)) === 200;
  const proves = (of: string) => async () =>
    (await service.post(TOKEN, { grant_type: 'test_proof', client_id: ACME_SITE, code: of })).status === 200;
  const leads =
    (response: TestResponse, id = entity_id) =>
    async () =>
      (await service.visit(cookieHeader(response))).body.entity_id === id;
  const refreshes =
    ({ body }: { body: { refresh_token: string } }, clientId = client_id) =>
    async () =>
      (await refreshCustomer(service, body.refresh_token, { client_id: clientId })).body.entity_id === entity_id;
  const byAnyAgent = async (named: object) =>
    (await service.post(TOKEN, agentTokenBody(named), bearer(await issueAgentToken(service)))).body;
  /** Whether each thing still works. The order is that of the columns. */
  const isAlive: Record<string, () => Promise<boolean>> = {
    token: isValid(token),
    'other token': isValid(other),
    code: async () => (await redeemCode(code)).status === 200,
    proof: proves(proof),
    'moved token': isValid(moved),
    link: leads(link.response),
    "link's token": isValid(linkToken),
    "link's link": leads(secondLink.response),
    family: refreshes(family),
    "family's family": refreshes(secondFamily),
    'own link': leads(first),
    copy: leads(copy.response),
    'sign-in': leads(signedIn, signedIn.body.entity_id),
    'external id': async () => (await byAnyAgent({ external_id: user })).entity_id === signedIn.body.entity_id,
    "agent's own token": async () => (await service.post(TOKEN, agentTokenBody(), bearer(agent))).status === 200,
    "agent's token": isValid(agentsToken),
    "agent's code": async () => (await redeem(service, agentsCode)).status === 200,
    "agent's proof": proves(agentsProof),
    "agent's link": leads(agentsLink.response),
    "agent's family": refreshes(agentsFamily, ACME_SITE),
    elsewhere: async () => (await service.visit(firstCookie, ELSEWHERE)).body.entity_id === elsewhere,
  };
  return {
    ...{ client_id, agentId, agent, agentPair, entity_id, token, first, firstCookie, link, linkToken, family, copy },
    ...{ signedIn, isAlive },
  };
}
type World = Awaited<ReturnType<typeof newWorld>>;

const endToken = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const revoke = (token: string, client_id: string) => service.post('/v2/customer/revoke', { token, client_id });
const revokeAsOperator = (token: string) => service.admin('POST', '/oauth2/revoke', { token });
const replay = async ({ use, code }: { use: () => Promise<TestResponse>; code: string }) => {
  await ageRedemption(service, code, 3);
  return use();
};
const forget = (cookie: string) =>
  service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie, origin: ACME_ORIGIN });
const endBrowser = async (entityId: string, response: TestResponse) => {
  const browserId = (await linksOfBrowser(service, response))[0]?.browserId;
  return service.admin('DELETE', `/admin/identities/${entityId}/browsers/${browserId}`);
};
const reuse = async ({ body }: World['family'], client_id: string) => {
  const next = (await refreshCustomer(service, body.refresh_token, { client_id })).body.refresh_token;
  await refreshCustomer(service, next, { client_id });
  await ageRotation(service, next, 121);
  const response = await refreshCustomer(service, body.refresh_token, { client_id });
  body.refresh_token = next;
  return response;
};
const reuseOfAgent = async (refreshToken: string) => {
  const next = (await refresh(service, refreshToken)).body.refresh_token;
  await refresh(service, next);
  return refresh(service, refreshToken);
};
const pass = (seconds: number) => {
  service.clock.advance({ seconds });
  return undefined;
};

/** An event of each of the two customers: the first browser's, and that of the user who signed in. */
const ofBoth =
  (act: (entityId: string, token: string, world: World) => Promise<TestResponse>) => async (world: World) => {
    const { entity_id, access_token } = world.signedIn.body;
    const ofUser = await act(entity_id, access_token, world);
    expect(ofUser.status).toBe(200);
    return act(world.entity_id, world.token, world);
  };

/** Each event, with the status of its response. */
const EVENTS: Record<string, [act: (world: World) => Promise<TestResponse> | undefined, status?: number]> = {
  '`DELETE /v2/customer/token` with the token': [ofBoth((_, token) => endToken(token))],
  '`/v2/customer/revoke` of the token': [ofBoth((_, token, { client_id }) => revoke(token, client_id))],
  '`/oauth2/revoke` of the token by the operator': [ofBoth((_, token) => revokeAsOperator(token))],
  '`/oauth2/revoke` of the refresh token by the operator': [
    ({ family }) => revokeAsOperator(family.body.refresh_token),
  ],
  "`DELETE /v2/customer/token` with the link's token": [({ linkToken }) => endToken(linkToken)],
  '`/v2/customer/revoke` of the refresh token': [
    ({ family, client_id }) => revoke(family.body.refresh_token, client_id),
  ],
  'replay of the code that gave the link': [({ link }) => replay(link), 400],
  'replay of the code that gave the family': [({ family }) => replay(family), 400],
  'reuse of a refresh token': [({ family, client_id }) => reuse(family, client_id), 400],
  '`end_sessions`': [ofBoth((entityId) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId))],
  '`end_sessions` with `browsers: true`': [
    ofBoth((entityId) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, { browsers: true })),
  ],
  '`forget` from the first browser': [({ firstCookie }) => forget(firstCookie)],
  '`forget` from the browser of the link': [({ link }) => forget(cookieHeader(link.response))],
  '`forget` from the browser of the copy': [({ copy }) => forget(cookieHeader(copy.response))],
  '`forget` from the browser of the sign-in': [({ signedIn }) => forget(cookieHeader(signedIn))],
  'the operator ends the first browser': [({ entity_id, first }) => endBrowser(entity_id, first)],
  'the operator ends the browser of the link': [({ entity_id, link }) => endBrowser(entity_id, link.response)],
  'the operator ends the family': [
    async ({ entity_id, client_id }) => {
      const [family] = (await familiesOf(service, entity_id))
        .filter(({ clientId }) => clientId === client_id)
        .sort((one, other) => one.begunAt.getTime() - other.begunAt.getTime());
      return service.admin('DELETE', `/admin/identities/${entity_id}/refresh-families/${family?.id}`);
    },
  ],
  'a new user signs in with `link` in the first browser': [
    ({ client_id, firstCookie }) => signInFrom(client_id, firstCookie, { link: 'browser' }),
  ],
  'another user signs in in the browser of the sign-in': [
    ({ client_id, signedIn }) => signInFrom(client_id, cookieHeader(signedIn), { link: 'browser' }),
  ],
  erasure: [ofBoth((entityId) => service.admin('DELETE', `/admin/identities/${entityId}`))],
  'the client is deleted': [({ client_id }) => service.admin('DELETE', `/admin/clients/${client_id}`)],
  'the client gets a new secret': [
    ({ client_id }) => service.admin('POST', `/admin/clients/${client_id}/secret`, { old_valid_for: 0 }),
  ],
  'the agent ends its token': [({ agent }) => service.send('DELETE', '/v2/token', bearer(agent))],
  "`/oauth2/revoke` of the agent's refresh token by the operator": [
    ({ agentPair }) => revokeAsOperator(agentPair.refresh_token),
  ],
  "reuse of the agent's refresh token": [({ agentPair }) => reuseOfAgent(agentPair.refresh_token), 400],
  'the agent gets a new password': [
    ({ agentId }) => service.admin('PATCH', `/admin/agents/${agentId}`, { password: 'another password of the agent' }),
  ],
  'the agent moves to another organization': [
    ({ agentId }) => service.admin('PATCH', `/admin/agents/${agentId}`, { organization_id: RIVAL }),
  ],
  'the agent is deleted': [({ agentId }) => service.admin('DELETE', `/admin/agents/${agentId}`)],
  'access tokens expire': [() => pass(28_801)],
  '`sign_in_days` without a sign-in': [() => pass((SIGN_IN_DAYS + 1) * DAY_SECONDS)],
  '`idle_days` without a request': [() => pass((IDLE_DAYS + 1) * DAY_SECONDS)],
};

describe('protocol §3.10: what ends what', () => {
  const cellsOf = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const page = readFileSync(join(import.meta.dirname, '../../docs/protocol.md'), 'utf8');
  const table = page.slice(page.indexOf('| event | token |')).split('\n\n', 1)[0] as string;
  const [header, , ...lines] = table.split('\n').map(cellsOf) as [string[], string[], ...string[][]];
  const expected = new Map(lines.map(([event, ...cells]) => [event as string, cells]));

  it('has each row of the table of the protocol', () => {
    expect([...expected.keys()]).toEqual(Object.keys(EVENTS));
  });

  it.each(Object.entries(EVENTS))('%s', async (event, [act, status = 200]) => {
    const world = await newWorld();
    expect((await act(world))?.status ?? status).toBe(status);
    const ended: string[] = [];
    for (const isAlive of Object.values(world.isAlive)) ended.push((await isAlive()) ? '' : 'ends');
    const named = (cells: string[]) => Object.keys(world.isAlive).filter((_, column) => cells[column] === 'ends');
    expect(Object.keys(world.isAlive)).toEqual(header.slice(1));
    expect(named(ended)).toEqual(named(expected.get(event) as string[]));
  });
});
