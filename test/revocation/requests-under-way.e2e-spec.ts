import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { agentTokenBody, exchangeCode, refresh } from '../support/agent-tokens.js';
import { registryWithSignIn, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import {
  AgentBrowser,
  BACKEND_CALLBACK,
  FOR_CODE,
  FOR_TOKEN,
  queryOf,
  redirected,
} from '../support/authorization-page.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay, stayOf } from '../support/customer-refresh.js';
import { expectNoOrphans } from '../support/identities.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { moveOf, remember } from '../support/remember.js';
import { StatementGate } from '../support/statement-gate.js';
import { ACME, ACME_BACKEND, ACME_ORIGIN, BACKEND_SECRET } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { infoStatus, redeem, redeemBody, TRANSFER, transferBody, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const PASSWORD = 'a password of more than 8 characters';
/** More statements than any of these requests sends. */
const MAX_STATEMENTS = 20;

let users: SignInSystem;
const service = useService(async () => {
  users = await SignInSystem.start();
  const grants = { identity_token: { remember: ['browser', 'refresh_token'] } };
  return { registry: registryWithSignIn({ [ACME]: users.settings() }, refreshingRegistry({ grants })) };
});
afterAll(() => users?.issuer.stop());

/** An agent and a customer, with what the service has given to both. */
class Cast {
  private constructor(
    readonly agentId: string,
    readonly email: string,
    public customerId: string,
    readonly customerToken: string,
    readonly cookie: string,
  ) {}

  static async make(): Promise<Cast> {
    const email = `${randomUUID()}@acme.example`;
    const entry = { email, name: 'Agent', password: PASSWORD, organization_id: ACME, scopes: ['customers:own'] };
    const { id } = (await service.admin('POST', '/admin/agents', entry)).body;
    const visit = await service.post(TOKEN, cookieBody());
    return new Cast(id, email, visit.body.entity_id, visit.body.access_token, cookieHeader(visit));
  }

  token = () => issueAgentToken(service, { email: this.email, clientId: ACME_BACKEND });

  async browser(): Promise<AgentBrowser> {
    const browser = new AgentBrowser(service);
    await browser.signIn({ email: this.email, password: PASSWORD });
    return browser;
  }

  async code(): Promise<string> {
    const response = await (await this.browser()).open(FOR_CODE);
    return redirected(response).parameters.code as string;
  }
}

type Send = (headers: Record<string, string>) => Promise<TestResponse>;

/** Requests that issue something. Each entry prepares its request and resolves to the function that sends it. */
const REQUESTS: Record<string, (cast: Cast) => Promise<Send>> = {
  'a cookie grant of a returning customer':
    async ({ cookie }) =>
    (headers) =>
      service.post(TOKEN, cookieBody(), { ...headers, cookie }),
  'an agent token grant': async ({ token, customerId }) => {
    const agent = bearer(await token());
    return (headers) => service.post(TOKEN, agentTokenBody({ entity_id: customerId }), { ...headers, ...agent });
  },
  'an identity transfer by the customer':
    async ({ customerToken }) =>
    (headers) =>
      service.post(TRANSFER, transferBody(), { ...headers, ...bearer(customerToken) }),
  'an identity transfer by an agent': async ({ token, customerId }) => {
    const body = transferBody({ bearer_type: 'agent', customer_id: customerId });
    const agent = bearer(await token());
    return (headers) => service.post(TRANSFER, body, { ...headers, ...agent });
  },
  'an exchange of a transfer token': async ({ token, customerId }) => {
    const code = await transferToken(service, await token(), { bearer_type: 'agent', customer_id: customerId });
    return (headers) => service.post(TOKEN, redeemBody(code), headers);
  },
  'an exchange that a browser remembers': async ({ token, customerId }) => {
    const move = await moveOf(service, await token(), { bearer_type: 'agent', customer_id: customerId });
    return (headers) => remember(service, move, { headers });
  },
  'an exchange that gives a refresh token': async ({ token, customerId }) => {
    const move = await moveOf(service, await token(), { bearer_type: 'agent', customer_id: customerId });
    return (headers) => stay(service, move, {}, headers);
  },
  'a refresh of a customer': async ({ token, customerId }) => {
    const { refresh_token } = await stayOf(service, await token(), { bearer_type: 'agent', customer_id: customerId });
    return (headers) => refreshCustomer(service, refresh_token, {}, headers);
  },
  'an agent token grant with an external_id': async (cast) => {
    const external_id = randomUUID();
    const send = async (headers: object) =>
      service.post(TOKEN, agentTokenBody({ external_id }), { ...headers, ...bearer(await cast.token()) });
    cast.customerId = (await send({})).body.entity_id;
    return send;
  },
  'a sign-in': async (cast) => {
    const sub = randomUUID();
    const send = async (headers: object) => signIn(service, await users.assert(Date.now(), { sub }), {}, headers);
    cast.customerId = (await send({})).body.entity_id;
    return send;
  },
  'a sign-in that links the browser': async ({ cookie }) => {
    const assertion = await users.assert(Date.now(), { sub: randomUUID() });
    const link = { remember: 'browser', link: 'browser' };
    return (headers) => signIn(service, assertion, link, { ...headers, cookie, origin: ACME_ORIGIN });
  },
  'an exchange of an authorization code': async (cast) => {
    const code = await cast.code();
    const body = { grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK };
    return (headers) => service.post('/v2/token', { ...body, ...BACKEND }, headers);
  },
  'a refresh': async (cast) => {
    const { refresh_token } = (await exchangeCode(service, await cast.code())).body;
    return (headers) => service.post('/v2/token', { grant_type: 'refresh_token', refresh_token, ...BACKEND }, headers);
  },
  'an implicit grant at the authorization page': async (cast) => {
    const browser = await cast.browser();
    return (headers) => browser.send('GET', `/?${queryOf(FOR_TOKEN)}`, headers);
  },
  'a code grant at the authorization page': async (cast) => {
    const browser = await cast.browser();
    return (headers) => browser.send('GET', `/?${queryOf(FOR_CODE)}`, headers);
  },
};
const BACKEND = { client_id: ACME_BACKEND, client_secret: BACKEND_SECRET };

const CUSTOMER_REQUESTS = Object.keys(REQUESTS).slice(0, 11);
/**
 * An agent whose request reads the customer after its sessions have ended gets a valid token, as with a later request.
 * So does a user who signs in.
 */
const REQUESTS_WITH_EARLIER_GENERATION = CUSTOMER_REQUESTS.filter(
  (name) => !/an agent token grant|an identity transfer by an agent|a sign-in/.test(name),
);
const AGENT_REQUESTS = Object.keys(REQUESTS)
  .slice(1)
  .filter((name) => !/by the customer|a sign-in/.test(name));

const EVENTS: [string, string[], (cast: Cast) => Promise<TestResponse>][] = [
  [
    'the customer is erased',
    CUSTOMER_REQUESTS,
    ({ customerId }) => service.admin('DELETE', `/admin/customers/${customerId}`),
  ],
  [
    'all sessions of the customer are ended',
    REQUESTS_WITH_EARLIER_GENERATION,
    ({ customerId }) => service.admin('POST', `/admin/customers/${customerId}/end_sessions`, { browsers: true }),
  ],
  ['the agent is deleted', AGENT_REQUESTS, ({ agentId }) => service.admin('DELETE', `/admin/agents/${agentId}`)],
  [
    'the agent gets a new password',
    AGENT_REQUESTS,
    ({ agentId }) => service.admin('PATCH', `/admin/agents/${agentId}`, { password: `${PASSWORD}, a new one` }),
  ],
];

describe.each(EVENTS)('when %s', (event, names, causeEvent) => {
  it.each(names)('%s in progress gives nothing that is valid afterwards', async (name) => {
    let statement = 1;
    for (; statement <= MAX_STATEMENTS; statement++) {
      const cast = await Cast.make();
      const send = await (REQUESTS[name] as (cast: Cast) => Promise<Send>)(cast);
      const id = randomUUID();
      const gate = new StatementGate(service, id, statement);
      const pending = send({ 'x-request-id': id });
      const stopped = await Promise.race([gate.reached.then(() => true), pending.then(() => false)]);
      if (stopped) expect((await causeEvent(cast)).status).toBe(200);
      gate.close();
      const response = await pending;
      if (!stopped) break;
      await expectNothingValid(cast, response, `stopped after statement ${statement}`);
    }
    if (event === 'the customer is erased') await expectNoOrphans(service);
    expect(statement, 'the request must send statements, and end').toBeGreaterThan(1);
    expect(statement).toBeLessThan(MAX_STATEMENTS);
  });
});

/** Asserts that nothing in the response is or leads to a valid token of this customer or agent. */
async function expectNothingValid(cast: Cast, response: TestResponse, where: string): Promise<void> {
  const { access_token, identity_transfer_token, refresh_token, entity_id, code } = {
    ...redirected(response).parameters,
    ...response.body,
  };
  expect(response.status, where).toBeLessThan(500);
  if (response.status === 200 && response.cookies.length > 0 && code === undefined) {
    const next = await service.post(TOKEN, cookieBody(), { cookie: cookieHeader(response) });
    expect(next.body.entity_id, where).not.toBe(cast.customerId);
  }
  // A browser whose customer was erased may get a new customer.
  if (entity_id !== undefined && entity_id !== cast.customerId) return;
  if (access_token) expect(await isValid(access_token), where).toBe(false);
  if (refresh_token) {
    for (const use of [refresh, refreshCustomer]) expect((await use(service, refresh_token)).status, where).toBe(400);
  }
  if (code) expect((await exchangeCode(service, code)).status, where).toBe(400);
  if (!identity_transfer_token) return;
  const redeemed = await redeem(service, identity_transfer_token);
  if (redeemed.status === 200) expect(await isValid(redeemed.body.access_token), where).toBe(false);
}

async function isValid(token: string): Promise<boolean> {
  const asAgent = await service.post(TOKEN, agentTokenBody(), bearer(token));
  return asAgent.status === 200 || (await infoStatus(service, token)) === 200;
}
