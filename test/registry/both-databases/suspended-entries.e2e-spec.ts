import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { Registry } from '../../../src/registry/registry.js';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { AgentBrowser, FOR_TOKEN } from '../../support/authorization-page.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, stay, WITH_REFRESH } from '../../support/customer-refresh.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf } from '../../support/remember.js';
import { FeedConsumer } from '../../support/revocation-feed.js';
import { runOffboarding } from '../../support/tenants.js';
import { ADMIN_TOKEN, DAY_SECONDS, serviceOfTest, type UsedService, useService } from '../../support/use-service.js';

const service = useService();
/** Another process, with a clock of its own. */
const other = useService(() => ({ database: service.database }));
const services = () => [service, other];

const PASSWORD = 'a password of the agent';
const SITE = 'https://suspended.example/';

/** New for each test, because the clock is set back after each. */
let ofClient = { client_id: '', organization_id: '', redirect_uri: SITE };
let email = '';
const pathOf = (kind: string) =>
  kind === 'client' ? `clients/${ofClient.client_id}` : `organizations/${ofClient.organization_id}`;

const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);
const set = async (path: string, suspended: boolean | null) => {
  const { status, body } = await admin('PATCH', path, { suspended });
  expect({ status, suspended: body.suspended }).toEqual({ status: 200, suspended: suspended ?? false });
};
const visit = (at: UsedService, cookie?: string) => at.visit(cookie, ofClient);
const info = async (at: UsedService, token: string) =>
  (await at.send('GET', '/v2/customer/info', bearer(token))).status;
const reasonOf = async (at: UsedService, token: string) =>
  (await manage(at, 'POST', '/oauth2/introspect', bearer(ADMIN_TOKEN), { token })).body.inactive_reason;
const refresh = (at: UsedService, token: string) => refreshCustomer(at, token, { client_id: ofClient.client_id });
const asAgent = async (at: UsedService, token: string) =>
  (await at.post(TOKEN, agentTokenBody(ofClient), bearer(token))).status;
/** Lets the other process read the registry, which it does every 2 s. */
const renewOther = () => other.application.get(Registry, { strict: false }).renew();
/** A suspension lasts at least 5 s, and until its second is over. */
const passSuspension = () => {
  for (const each of services()) each.clock.advance({ seconds: 7 });
};

beforeEach(async () => {
  const [client_id, organization_id] = [randomUUID(), randomUUID()];
  ofClient = { client_id, organization_id, redirect_uri: SITE };
  email = `${randomUUID()}@suspended.example`;
  expect((await admin('POST', 'organizations', { id: organization_id, name: 'Suspended' })).status).toBe(201);
  const client = { client_id, name: 'Site', client_type: 'web', organization_id, redirect_uris: [SITE] };
  const more = { grant_types: WITH_REFRESH, grants: { identity_token: { remember: ['refresh_token'] } } };
  expect((await admin('POST', 'clients', { ...client, ...more, scopes: ['customers:own'] })).status).toBe(201);
  const agent = { email, name: 'Agent', password: PASSWORD, organization_id, scopes: ['customers:own'] };
  expect((await admin('POST', 'agents', agent)).status).toBe(201);
  await renewOther();
});

describe.each(['client', 'organization'])('a suspended %s', (kind) => {
  it('is refused with its tokens in each process, and nothing is deleted: only access tokens stay ended', async () => {
    const [path, { client_id }] = [pathOf(kind), ofClient];
    const value = kind === 'client' ? client_id : ofClient.organization_id;
    const first = await visit(service);
    const [token, cookie] = [first.body.access_token, cookieHeader(first)];
    const device = (await stay(service, await moveOf(service, token, { client_id }), { client_id })).body;
    const agentToken = await issueAgentToken(service, { email, clientId: client_id });
    expect([await info(other, token), await asAgent(other, agentToken)]).toEqual([200, 200]);
    await set(path, true);
    const refused = async (at: UsedService) => ({
      token: await info(at, token),
      reason: await reasonOf(at, token),
      visit: (await visit(at, cookie)).status,
      refresh: (await refresh(at, device.refresh_token)).status,
      agent: await asAgent(at, agentToken),
    });
    const expected = { token: 401, reason: `${kind}_suspended`, visit: 400, refresh: 400, agent: 401 };
    expect(await refused(service)).toEqual(expected);
    await renewOther();
    expect(await refused(other)).toEqual(expected);
    const consumer = new FeedConsumer([other], bearer(ADMIN_TOKEN));
    const { issued_before = '' } = await consumer.find({ kind, value });
    expect(Date.parse(issued_before)).toBeGreaterThanOrEqual(Number(claimsOf(token).iat) * 1000);

    await set(path, null);
    passSuspension();
    await renewOther();
    for (const at of services()) {
      const again = await visit(at, cookie);
      expect(again.body.entity_id).toBe(first.body.entity_id);
      expect(await info(at, again.body.access_token)).toBe(200);
      expect([await info(at, token), await asAgent(at, agentToken)], 'tokens from before').toEqual([401, 401]);
      expect(await reasonOf(at, token)).toBe(`${kind}_suspended`);
    }
    const refreshed = await refresh(other, device.refresh_token);
    expect(refreshed.status).toBe(200);
    expect(await info(service, refreshed.body.access_token)).toBe(200);
    const { iat } = claimsOf(refreshed.body.access_token);
    for (const entry of await consumer.catchUp()) {
      if (entry.kind === kind && entry.value === value)
        expect(Date.parse(entry.issued_before ?? ''), 'a new token').toBeLessThan(Number(iat) * 1000);
    }
  });

  it('gives no token before the second in which the suspension was taken back is over', async () => {
    await set(pathOf(kind), true);
    await set(pathOf(kind), false);
    expect((await visit(service)).status).toBe(400);
    passSuspension();
    const { access_token } = (await visit(service)).body;
    expect(await info(service, access_token)).toBe(200);
  });
});

describe('the reason of a token from before a suspension', () => {
  it('is the deletion of the client after a deletion, also for a process that starts later', async () => {
    const token = (await visit(service)).body.access_token;
    await set(pathOf('client'), true);
    expect((await admin('DELETE', pathOf('client'))).status).toBe(200);
    const later = await serviceOfTest({ database: service.database });
    for (const at of [service, later]) expect(await reasonOf(at, token)).toBe('client_revoked');
  });

  it('stays the suspension of the organization after its deletion, also for a process that starts later', async () => {
    const client_id = randomUUID();
    const isPublic = { client_id, name: 'Public', client_type: 'web', redirect_uris: [SITE] };
    expect((await admin('POST', 'clients', isPublic)).status).toBe(201);
    await admin('PATCH', pathOf('organization'), { public_clients: [client_id] });
    const token = (await service.visit(undefined, { ...ofClient, client_id })).body.access_token;
    await set(pathOf('organization'), true);
    expect((await admin('DELETE', pathOf('organization'))).status).toBe(200);
    for (const each of services()) each.clock.advance({ seconds: DAY_SECONDS + 1 });
    await runOffboarding(service);
    for (const each of services()) each.clock.reset();
    expect((await admin('GET', pathOf('client'))).status).toBe(404);
    const later = await serviceOfTest({ database: service.database });
    for (const at of [service, later]) expect(await reasonOf(at, token)).toBe('organization_suspended');
  });
});

it('the agents of a suspended organization cannot sign in, and are signed out until it is taken back', async () => {
  const query = { ...FOR_TOKEN, client_id: ofClient.client_id, redirect_uri: SITE };
  const path = pathOf('organization');
  const agent = { email, password: PASSWORD };
  const signIn = async () => (await new AgentBrowser(service).signIn(agent, query)).status;
  const browser = new AgentBrowser(service);
  expect((await browser.signIn(agent, query)).status).toBe(200);
  expect((await browser.open(query)).status).toBe(302);
  await set(path, true);
  expect([await signIn(), (await browser.open(query)).status]).toEqual([400, 200]);
  await set(path, false);
  passSuspension();
  expect([await signIn(), (await browser.open(query)).status]).toEqual([200, 302]);
});
