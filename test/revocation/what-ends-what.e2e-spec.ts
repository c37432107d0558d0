import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { agentTokenBody, exchangeCode, refresh } from '../support/agent-tokens.js';
import { JWT_BEARER, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf } from '../support/authorization-page.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshSessionsOf, type Stay, stay, WITH_REFRESH } from '../support/customer-refresh.js';
import { endSessionsAsOperator } from '../support/end-sessions.js';
import { sessionsOfBrowser } from '../support/identities.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { PROOF, proofExtension } from '../support/proof-extension.js';
import { moveOf, remember } from '../support/remember.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  testRegistry,
} from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { ageRedemption, infoStatus, redeem, redeemBody, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, DAY_SECONDS, useService } from '../support/use-service.js';

const IDLE_DAYS = 2;
const SIGN_IN_DAYS = 1;
const PASSWORD = 'a password of the agent';
const ELSEWHERE = { client_id: PUBLIC_SITE, organization_id: RIVAL };

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

/** What a customer can have. Each is a session, an access token of one, or an agent's. */
const THINGS = [
  ...['token', 'token of another client', 'code', 'proof', 'moved token', 'device', "device's token"],
  ...["device's device", 'refresh token', "refresh token's refresh token", 'earlier device', 'browser'],
  ...['copied browser', 'signed-in browser', 'external id', "agent's own token", "agent's token", "agent's code"],
  ...["agent's proof", "agent's device", "agent's refresh token", "device of the agent's token"],
  ...['browser in another organization'],
] as const;
type Thing = (typeof THINGS)[number];

/** What each thing was made with: the rule of protocol §3.10 follows this tree. */
const MADE_WITH: Partial<Record<Thing, Thing>> = {
  code: 'token',
  proof: 'token',
  'moved token': 'token',
  device: 'token',
  "device's device": "device's token",
  'refresh token': 'token',
  "refresh token's refresh token": 'refresh token',
  "agent's token": "agent's own token",
  "agent's code": "agent's own token",
  "agent's proof": "agent's own token",
  "agent's device": "agent's own token",
  "agent's refresh token": "agent's own token",
  "device of the agent's token": "agent's token",
};

/** The access tokens of a session end with it. */
const TOKENS_OF: Partial<Record<Thing, Thing[]>> = {
  browser: ['token', 'token of another client'],
  device: ["device's token"],
};

/** The things and what was made with them, at any depth. */
function withWhatTheyMade(things: Thing[]): Thing[] {
  const ended = new Set(things.flatMap((thing) => [thing, ...(TOKENS_OF[thing] ?? [])]));
  const made = THINGS.filter((thing) => ended.has(MADE_WITH[thing] as Thing));
  return made.every((thing) => ended.has(thing)) ? [...ended] : withWhatTheyMade([...ended, ...made]);
}

/** What ends with the tokens of the browser: the browser, and a device that was made a minute before, stay. */
const OF_TOKENS: Thing[] = ['token', 'token of another client'];
const OF_USER: Thing[] = ['signed-in browser', 'external id'];
const BROWSERS: Thing[] = ['browser', 'copied browser'];
/** Everything of the customer that is not the agent's, nor of another organization or customer. */
const OF_CUSTOMER = THINGS.filter(
  (thing) => !["agent's own token", 'browser in another organization', ...OF_USER].includes(thing),
);

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
  const move = (bearerToken: string, more: object = { client_id }) => moveOf(service, bearerToken, more);
  const rememberFrom = async (bearerToken: string, more: object = { client_id }) => {
    const moved = await move(bearerToken, more);
    const use = () => remember(service, moved, { body: { client_id: ACME_SITE, ...('client_id' in more && more) } });
    return { use, code: moved.code, response: await use() };
  };
  const stayFrom = async (bearerToken: string, more: { client_id: string }) => {
    const moved = await move(bearerToken, more);
    const use = () => stay(service, moved, { client_id: more.client_id });
    return { use, code: moved.code, body: (await use()).body as Stay };
  };
  const byAgent = { bearer_type: 'agent', customer_id: '', client_id: ACME_SITE };

  const first = await service.visit(undefined, own);
  const { entity_id, access_token: earlierToken } = first.body as { entity_id: string; access_token: string };
  byAgent.customer_id = entity_id;
  const firstCookie = cookieHeader(first);
  const earlierDevice = await rememberFrom(earlierToken);
  service.clock.advance({ seconds: 120 });

  const token: string = (await service.visit(firstCookie, own)).body.access_token;
  const other = (await service.visit(firstCookie)).body.access_token;
  const elsewhere = (await service.visit(firstCookie, ELSEWHERE)).body.entity_id;
  const code = await transferToken(service, token, { client_id });
  const redeemCode = (of: string) => service.post(TOKEN, redeemBody(of, { client_id }));
  const proofOf = async (bearerToken: string, more: object = {}) =>
    (await service.post(PROOF, more, bearer(bearerToken))).body.code;
  const [proof, agentsProof] = [await proofOf(token), await proofOf(agent, { customer_id: entity_id })];
  const moved = (await redeemCode(await transferToken(service, token, { client_id }))).body.access_token;
  const device = await rememberFrom(token);
  const deviceToken = (await service.visit(cookieHeader(device.response), own)).body.access_token;
  const deviceOfDevice = await rememberFrom(deviceToken);
  const refreshing = await stayFrom(token, { client_id });
  const refreshingOfRefreshing = await stayFrom(refreshing.body.access_token, { client_id });
  const inRival = (await service.visit(undefined, ELSEWHERE)).body.access_token;
  const copy = await remember(service, await move(inRival, { client_id: PUBLIC_SITE }), {
    cookie: firstCookie,
    body: { client_id: PUBLIC_SITE, replace: true },
    headers: { origin: PUBLIC_ORIGIN },
  });
  const agentsToken = (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token;
  const agentsCode = await transferToken(service, agent, byAgent);
  const agentsDevice = await rememberFrom(agent, byAgent);
  const agentsRefreshing = await stayFrom(agent, byAgent);
  const madeWithAgentsToken = await rememberFrom(agentsToken);

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
  /** Whether each thing still works. */
  const isAlive: Record<Thing, () => Promise<boolean>> = {
    token: isValid(token),
    'token of another client': isValid(other),
    code: async () => (await redeemCode(code)).status === 200,
    proof: proves(proof),
    'moved token': isValid(moved),
    device: leads(device.response),
    "device's token": isValid(deviceToken),
    "device's device": leads(deviceOfDevice.response),
    'refresh token': refreshes(refreshing),
    "refresh token's refresh token": refreshes(refreshingOfRefreshing),
    'earlier device': leads(earlierDevice.response),
    browser: leads(first),
    'copied browser': leads(copy),
    'signed-in browser': leads(signedIn, signedIn.body.entity_id),
    'external id': async () => (await byAnyAgent({ external_id: user })).entity_id === signedIn.body.entity_id,
    "agent's own token": async () => (await service.post(TOKEN, agentTokenBody(), bearer(agent))).status === 200,
    "agent's token": isValid(agentsToken),
    "agent's code": async () => (await redeem(service, agentsCode)).status === 200,
    "agent's proof": proves(agentsProof),
    "agent's device": leads(agentsDevice.response),
    "agent's refresh token": refreshes(agentsRefreshing, ACME_SITE),
    "device of the agent's token": leads(madeWithAgentsToken.response),
    'browser in another organization': async () =>
      (await service.visit(firstCookie, ELSEWHERE)).body.entity_id === elsewhere,
  };
  return {
    ...{ client_id, agentId, agent, agentPair, entity_id, token, first, firstCookie, device, deviceToken, refreshing },
    ...{ copy, signedIn, isAlive },
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
  const browserId = (await sessionsOfBrowser(service, response))[0]?.browserId;
  return service.admin('DELETE', `/admin/customers/${entityId}/browsers/${browserId}`);
};
const reuse = async ({ body }: World['refreshing'], client_id: string) => {
  const next = (await refreshCustomer(service, body.refresh_token, { client_id })).body.refresh_token;
  await refreshCustomer(service, next, { client_id });
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

interface Event {
  act: (world: World) => Promise<TestResponse> | undefined;
  /** What ends. */
  ends: Thing[];
  status?: number;
}

const ENDS_TOKENS = withWhatTheyMade(OF_TOKENS);
const OF_AGENT = withWhatTheyMade(["agent's own token"]);
/** An access token lives for 8 hours, and a transfer token for one. */
const SHORT_LIVED: Thing[] = [
  ...['token', 'token of another client', 'code', 'moved token', "device's token", "agent's own token"],
  ...["agent's token", "agent's code"],
] as Thing[];

/** Each event, in the words of the table of protocol §3.10. */
const EVENTS: Record<string, Event> = {
  'the end of the token by its holder': { act: ofBoth((_, token) => endToken(token)), ends: ENDS_TOKENS },
  'the revocation of the token by its client': {
    act: ofBoth((_, token, { client_id }) => revoke(token, client_id)),
    ends: ENDS_TOKENS,
  },
  'the revocation of the token by the operator': {
    act: ofBoth((_, token) => revokeAsOperator(token)),
    ends: ENDS_TOKENS,
  },
  'the end of the token after it has expired': {
    act: async ({ token }) => {
      pass(28_801);
      return endToken(token);
    },
    ends: [...new Set([...SHORT_LIVED, ...withWhatTheyMade(['device', 'refresh token']), 'proof' as const])],
  },
  'the end of the token of the device': {
    act: ({ deviceToken }) => endToken(deviceToken),
    ends: withWhatTheyMade(["device's token"]),
  },
  'the revocation of the refresh token by its client': {
    act: ({ refreshing, client_id }) => revoke(refreshing.body.refresh_token, client_id),
    ends: withWhatTheyMade(['refresh token']),
  },
  'the revocation of the refresh token by the operator': {
    act: ({ refreshing }) => revokeAsOperator(refreshing.body.refresh_token),
    ends: withWhatTheyMade(['refresh token']),
  },
  'a reuse of the refresh token': {
    act: ({ refreshing, client_id }) => reuse(refreshing, client_id),
    ends: withWhatTheyMade(['refresh token']),
    status: 400,
  },
  'a replay of the code that gave the device': {
    act: ({ device }) => replay(device),
    ends: withWhatTheyMade(['device']),
    status: 400,
  },
  'a replay of the code that gave the refresh token': {
    act: ({ refreshing }) => replay(refreshing),
    ends: withWhatTheyMade(['refresh token']),
    status: 400,
  },
  'the end of the browser by the operator': {
    act: ({ entity_id, first }) => endBrowser(entity_id, first),
    ends: [...withWhatTheyMade(['browser']), 'earlier device'],
  },
  'the end of the device by the operator': {
    act: ({ entity_id, device }) => endBrowser(entity_id, device.response),
    ends: withWhatTheyMade(['device']),
  },
  'the end of the refresh token by the operator': {
    act: async ({ entity_id, client_id }) => {
      const [session] = (await refreshSessionsOf(service, entity_id))
        .filter(({ clientId }) => clientId === client_id)
        .sort((one, other) => one.depth - other.depth);
      return service.admin('DELETE', `/admin/customers/${entity_id}/refresh-tokens/${session?.id}`);
    },
    ends: withWhatTheyMade(['refresh token']),
  },
  end_sessions: {
    act: ofBoth((entityId) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId)),
    ends: OF_CUSTOMER.filter((thing) => !BROWSERS.includes(thing)),
  },
  'end_sessions with browsers': {
    act: ofBoth((entityId) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, { browsers: true })),
    ends: [...OF_CUSTOMER, 'signed-in browser'],
  },
  'forget from the browser': { act: ({ firstCookie }) => forget(firstCookie), ends: ['browser'] },
  'forget from the device': { act: ({ device }) => forget(cookieHeader(device.response)), ends: ['device'] },
  'forget from the copied browser': {
    act: ({ copy }) => forget(cookieHeader(copy)),
    ends: ['copied browser'],
  },
  'forget from the signed-in browser': {
    act: ({ signedIn }) => forget(cookieHeader(signedIn)),
    ends: ['signed-in browser'],
  },
  'the sign-in of a new user with link in the browser': {
    act: ({ client_id, firstCookie }) => signInFrom(client_id, firstCookie, { link: 'browser' }),
    ends: OF_CUSTOMER,
  },
  'the sign-in of a known user with link in the browser': {
    act: async ({ client_id, firstCookie }) => {
      const user = randomUUID();
      await signInFrom(client_id, undefined, {}, user);
      return signInFrom(client_id, firstCookie, { link: 'browser' }, user);
    },
    ends: OF_CUSTOMER,
  },
  'the sign-in of another user in the signed-in browser': {
    act: ({ client_id, signedIn }) => signInFrom(client_id, cookieHeader(signedIn), { link: 'browser' }),
    ends: [],
  },
  'the erasure of the customers': {
    act: ofBoth((entityId) => service.admin('DELETE', `/admin/customers/${entityId}`)),
    ends: [...OF_CUSTOMER, ...OF_USER],
  },
  'the deletion of the client': {
    act: ({ client_id }) => service.admin('DELETE', `/admin/clients/${client_id}`),
    ends: [
      ...(['token', 'code', 'proof', 'moved token', "device's token", 'refresh token'] as Thing[]),
      ...(["refresh token's refresh token"] as Thing[]),
    ],
  },
  'a new secret of the client': {
    act: ({ client_id }) => service.admin('POST', `/admin/clients/${client_id}/secret`, { old_valid_for: 0 }),
    ends: [],
  },
  "the end of the agent's token by the agent": {
    act: ({ agent }) => service.send('DELETE', '/v2/token', bearer(agent)),
    ends: OF_AGENT,
  },
  "the revocation of the agent's refresh token": {
    act: ({ agentPair }) => revokeAsOperator(agentPair.refresh_token),
    ends: OF_AGENT,
  },
  "a reuse of the agent's refresh token": {
    act: ({ agentPair }) => reuseOfAgent(agentPair.refresh_token),
    ends: OF_AGENT,
    status: 400,
  },
  'a new password of the agent': {
    act: ({ agentId }) => service.admin('PATCH', `/admin/agents/${agentId}`, { password: 'another password' }),
    ends: OF_AGENT,
  },
  'the move of the agent to another organization': {
    act: ({ agentId }) => service.admin('PATCH', `/admin/agents/${agentId}`, { organization_id: RIVAL }),
    ends: OF_AGENT,
  },
  'the deletion of the agent': {
    act: ({ agentId }) => service.admin('DELETE', `/admin/agents/${agentId}`),
    ends: OF_AGENT,
  },
  'the expiry of access tokens': { act: () => pass(28_801), ends: SHORT_LIVED },
  'the end of the days of a sign-in': {
    act: () => pass((SIGN_IN_DAYS + 1) * DAY_SECONDS),
    ends: [...SHORT_LIVED, 'proof', "agent's proof", 'signed-in browser'],
  },
  'the end of the days without a visit': {
    act: () => pass((IDLE_DAYS + 1) * DAY_SECONDS),
    ends: [
      ...(['device', "device's device", 'earlier device', "device of the agent's token", "agent's device"] as Thing[]),
      ...[...SHORT_LIVED, ...BROWSERS, 'proof' as const, "agent's proof" as const, 'signed-in browser' as const],
    ],
  },
};

describe('protocol §3.10: what ends what', () => {
  it.each(Object.entries(EVENTS))('%s ends what was made with it, and nothing else', async (_, event) => {
    const { act, ends, status = 200 } = event;
    const world = await newWorld();
    expect((await act(world))?.status ?? status).toBe(status);
    const ended: Thing[] = [];
    for (const thing of THINGS) if (!(await world.isAlive[thing]())) ended.push(thing);
    expect(ended).toEqual(THINGS.filter((thing) => ends.includes(thing)));
  });
});
