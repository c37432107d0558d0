import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Agents } from '../../../src/registry/agents.js';
import { Registry } from '../../../src/registry/registry.js';
import { agentTokenBody, askToken, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { deferred } from '../../support/deferred.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { applyRegistry, exportOf } from '../../support/registry-files.js';
import { delaySelects } from '../../support/statements.js';
import { runOffboarding } from '../../support/tenants.js';
import { ACME, ACME_SITE, BACKEND_SECRET, RIVAL, testRegistry } from '../../support/test-registry.js';
import { agentSessionsIn, infoStatus } from '../../support/transfers.js';
import { DAY_SECONDS, type UsedService, useService } from '../../support/use-service.js';

const BOTH_SCOPES = ['customers:own', 'customers:manage'];
const GRANTS = ['client_credentials', 'agent_token'];

const service = useService({ registry: refreshingRegistry() });
/** Another process on the same database. */
const other = useService(() => ({ registry: refreshingRegistry(), database: service.database }));

/** New for each test. */
let clientId = '';
let agent = { id: '', email: '', path: '' };
let path = '';

const newAgent = async (fields: object = {}) => {
  const entry = { email: `${randomUUID()}@acme.example`, name: 'Backend', password: 'a password of the agent' };
  const { status, body } = await service.admin('POST', '/admin/agents', {
    ...{ ...entry, organization_id: ACME, scopes: BOTH_SCOPES, ...fields },
  });
  expect(status).toBe(201);
  return { id: body.id as string, email: body.email as string, path: `/admin/agents/${body.id}` };
};
const newClient = async (fields: object = {}) => {
  const client_id = randomUUID();
  const entry = { client_id, name: 'Backend', client_type: 'server', client_secret: BACKEND_SECRET };
  const response = await service.admin('POST', '/admin/clients', {
    ...{ ...entry, organization_id: ACME, grant_types: GRANTS, scopes: BOTH_SCOPES, agent: agent.email, ...fields },
  });
  return { client_id, response };
};
const request = (more: Record<string, string | undefined> = {}, at: UsedService = service) =>
  askToken(at, { client_id: clientId, grant_type: 'client_credentials', ...more });
const tokenOf = async (...parameters: Parameters<typeof request>): Promise<string> => {
  const { status, body } = await request(...parameters);
  expect(status).toBe(200);
  return body.access_token;
};
const sessionOf = (token: string) => {
  const { sid, ep } = claimsOf(token);
  return { sid, ep };
};
const customerToken = (agentToken: string) =>
  service.post(TOKEN, agentTokenBody({ client_id: ACME_SITE }), bearer(agentToken));
const isValid = async (agentToken: string) => (await customerToken(agentToken)).status === 200;
const expectUnauthorized = async (more: Record<string, string | undefined> = {}) => {
  const { status, body } = await request(more);
  expect({ status, error: body.error }).toEqual({ status: 400, error: 'unauthorized_client' });
  return body.error_hint as string;
};
const change = async (method: string, of: string, body?: object) => {
  expect((await service.admin(method, of, body)).status).toBe(200);
};
const rows = () => agentSessionsIn(service).countBy({ clientId });

beforeEach(async () => {
  agent = await newAgent();
  const { client_id, response } = await newClient();
  expect(response.status).toBe(201);
  clientId = client_id;
  path = `/admin/clients/${clientId}`;
  await other.application.get(Registry, { strict: false }).renew();
});

describe('protocol §6.8: the grant client_credentials', () => {
  it('responds with a token of the agent that the entry names, and without a refresh token', async () => {
    const { status, body } = await request();
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: 28_800,
        scope: BOTH_SCOPES.join(' '),
        account_id: agent.id,
        organization_id: ACME,
      },
    });
    const event = service.audit.find(({ event: name }) => name === 'token.issued');
    expect(event).toMatchObject({ actor: { id: agent.id }, clientId, organizationId: ACME });
    const customer = await customerToken(body.access_token);
    expect(claimsOf(customer.body.access_token).act).toMatchObject({ sub: agent.id, client_id: clientId });
  });

  it('gives the requested scopes that the client and the agent have in common', async () => {
    expect((await request({ scope: 'customers:own' })).body.scope).toBe('customers:own');
    expect((await request({ scope: 'customers:own other' })).body.scope).toBe('customers:own');
    const { status, body } = await request({ scope: 'other' });
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_scope' });
  });

  it.each(['client', 'agent'])('gives customers:manage only if the %s has it', async (owner) => {
    await change('PATCH', owner === 'client' ? path : agent.path, { scopes: ['customers:own'] });
    const { body } = await request();
    expect(body.scope).toBe('customers:own');
    const external_id = randomUUID();
    const { status } = await service.post('/v2/customer/export', { external_id }, bearer(body.access_token));
    expect(status).toBe(403);
  });

  it('is refused unless the client authenticates, lists the grant and names an agent', async () => {
    expect((await request({ client_secret: undefined })).status).toBe(401);
    expect((await request({ client_secret: 'x'.repeat(32) })).status).toBe(401);
    for (const grant_types of [null, ['agent_token']]) {
      await change('PATCH', path, { grant_types });
      expect(await expectUnauthorized()).toMatch(/^grant_type: /);
    }
    await change('PATCH', path, { grant_types: GRANTS, agent: null });
    expect(await expectUnauthorized()).toMatch(/^client_id: /);
  });

  it('is not a grant of customers', async () => {
    const body = { grant_type: 'client_credentials', client_id: clientId, response_type: 'token' };
    expect((await service.post(TOKEN, body)).body.error).toBe('unsupported_grant_type');
  });
});

describe('protocol §3.11: the session of a client', () => {
  it('is one session, also when the first requests race in two processes', async () => {
    for (const each of [service, other]) delaySelects(each);
    const tokens = await times(12, (index) => tokenOf({}, index % 2 ? service : other));
    expect(new Set(tokens.map((token) => sessionOf(token).sid)).size).toBe(1);
    expect(await rows()).toBe(1);
    expect(new Set(tokens).size).toBe(12);
  });

  it('does not expire, and is not purged', async () => {
    const first = sessionOf(await tokenOf());
    service.passDays(800);
    await purge(service);
    expect(sessionOf(await tokenOf())).toEqual(first);
  });

  it('gets a new epoch by a revocation, and the next token is valid', async () => {
    const [first, second] = [await tokenOf(), await tokenOf()];
    const obtained = await stayOf(service, (await customerToken(first)).body.access_token);
    expect((await service.send('DELETE', '/v2/token', bearer(first))).status).toBe(200);
    expect([await isValid(first), await isValid(second)]).toEqual([false, false]);
    expect(await infoStatus(service, obtained.access_token)).toBe(401);
    expectInvalidGrant(await refreshCustomer(service, obtained.refresh_token));
    const next = await tokenOf({}, other);
    expect(sessionOf(next)).toEqual({ sid: sessionOf(first).sid, ep: 1 });
    expect(await isValid(next)).toBe(true);
  });

  it('has no valid token of before a revocation that races with requests', async () => {
    for (let round = 0; round < 8; round++) {
      const first = await tokenOf();
      const racing = times(4, (index) => tokenOf({}, index % 2 ? service : other));
      expect((await service.send('DELETE', '/v2/token', bearer(first))).status).toBe(200);
      for (const token of [first, ...(await racing)])
        expect(await isValid(token)).toBe(Number(sessionOf(token).ep) === round + 1);
      expect(await isValid(await tokenOf())).toBe(true);
    }
  });

  it.each([
    ['the agent gets a new password', async () => change('PATCH', agent.path, { password: 'another password' })],
    ['the agent gets other scopes', async () => change('PATCH', agent.path, { scopes: ['customers:own'] })],
    ['the entry names another agent', async () => change('PATCH', path, { agent: (await newAgent()).email })],
    [
      'the entry names no agent for a while',
      async () => {
        await change('PATCH', path, { agent: null });
        await change('PATCH', path, { agent: agent.email });
      },
    ],
  ])(
    'ends with everything that was obtained with it when %s, and the next request begins another one',
    async (_when, act) => {
      const first = await tokenOf();
      const obtained = await stayOf(service, (await customerToken(first)).body.access_token);
      await act();
      expect(await isValid(first)).toBe(false);
      expect(await infoStatus(service, obtained.access_token)).toBe(401);
      expectInvalidGrant(await refreshCustomer(service, obtained.refresh_token));
      const next = await tokenOf();
      expect(sessionOf(next).sid).not.toBe(sessionOf(first).sid);
      expect(await isValid(next)).toBe(true);
      expect(await rows()).toBe(1);
    },
  );

  it('is not ended by a change that leaves the agent, and not by a new secret', async () => {
    const first = await tokenOf();
    await change('PATCH', path, { name: 'Renamed', agent: agent.email.toUpperCase() });
    await change('POST', `${path}/secret`);
    expect(await isValid(first)).toBe(true);
  });

  it('never belongs to an agent that the entry named before, also when the change races with requests', async () => {
    const agents = [agent, await newAgent()];
    for (let round = 1; round <= 6; round++) {
      const next = agents[round % 2] as typeof agent;
      await other.application.get(Registry, { strict: false }).renew();
      const racing = times(4, (index) => request({}, index % 2 ? service : other));
      await change('PATCH', path, { agent: next.email });
      for (const { status, body } of await racing)
        if (status === 200 && body.account_id !== next.id) expect(await isValid(body.access_token)).toBe(false);
        else expect([200, 503]).toContain(status);
      const stored = await agentSessionsIn(service).findBy({ clientId });
      expect(stored.filter(({ agentId }) => agentId !== next.id)).toEqual([]);
    }
  });

  it('is not begun by a process that has not learned yet that the entry names another agent', async () => {
    const next = await newAgent();
    const renew = vi.spyOn(other.application.get(Registry, { strict: false }), 'renew').mockResolvedValue();
    await change('PATCH', path, { agent: next.email });
    expect((await request({}, other)).status).toBe(503);
    expect(await rows()).toBe(0);
    renew.mockRestore();
    await other.application.get(Registry, { strict: false }).renew();
    expect((await request({}, other)).body.account_id).toBe(next.id);
  });

  it('gives no scope that the agent lost after a request had read it, though another request began a session since', async () => {
    const agents = service.application.get(Agents, { strict: false });
    const byId = agents.byId.bind(agents);
    const [read, resumed] = [deferred<void>(), deferred<void>()];
    vi.spyOn(agents, 'byId').mockImplementationOnce(async (id) => {
      const found = await byId(id);
      read.resolve();
      await resumed.promise;
      return found;
    });
    const early = request();
    await read.promise;
    await change('PATCH', agent.path, { scopes: ['customers:own'] });
    expect((await request()).body.scope).toBe('customers:own');
    resumed.resolve();
    expect((await early).status).toBe(503);
    expect((await request()).body.scope).toBe('customers:own');
  });

  it('ends with its agent, and another agent with the same email or id does not take over', async () => {
    const first = await tokenOf();
    await change('DELETE', agent.path);
    expect(await isValid(first)).toBe(false);
    expect(await expectUnauthorized()).toMatch(/^client_id: /);
    expect((await service.admin('GET', path)).body).not.toHaveProperty('agent');
    const again = { email: agent.email, name: 'Again', password: 'a password of the agent', organization_id: ACME };
    expect((await service.admin('PUT', agent.path, { ...again, scopes: BOTH_SCOPES })).status).toBe(201);
    await change('PATCH', path, { name: 'Renamed' });
    await expectUnauthorized();
    await change('PATCH', path, { agent: agent.email });
    expect((await request()).body.account_id).toBe(agent.id);
  });

  it('gives no token while the agent belongs to another organization', async () => {
    const first = await tokenOf();
    await change('PATCH', agent.path, { organization_id: RIVAL });
    expect(await isValid(first)).toBe(false);
    await expectUnauthorized();
  });

  it('ends with its client, and a client with the same id does not take over', async () => {
    const first = await tokenOf();
    const obtained = await stayOf(service, (await customerToken(first)).body.access_token);
    await change('DELETE', path);
    expect(await isValid(first)).toBe(false);
    expect((await request()).status).toBe(401);
    expect(await infoStatus(service, obtained.access_token), 'of another client').toBe(200);
    service.passDays(2);
    await purge(service);
    const entry = { name: 'Again', client_type: 'server', client_secret: BACKEND_SECRET, organization_id: ACME };
    const more = { grant_types: GRANTS, scopes: BOTH_SCOPES, agent: agent.email };
    expect((await service.admin('PUT', path, { ...entry, ...more })).status).toBe(201);
    expect(sessionOf(await tokenOf()).sid).not.toBe(sessionOf(first).sid);
  });
});

describe('a suspension', () => {
  it.each([
    ['client', { status: 401, error: 'invalid_client' }],
    ['organization', { status: 400, error: 'unauthorized_client' }],
  ])('of the %s ends the tokens, and gives none until it is taken back', async (kind, refusal) => {
    const organization = randomUUID();
    const create = async (list: string, entry: object) =>
      expect((await service.admin('POST', `/admin/${list}`, entry)).status).toBe(201);
    await create('organizations', { id: organization, name: 'Tenant', public_clients: 'all' });
    agent = await newAgent({ organization_id: organization });
    clientId = (await newClient({ organization_id: organization })).client_id;
    const suspended = kind === 'client' ? `/admin/clients/${clientId}` : `/admin/organizations/${organization}`;
    const first = await tokenOf();
    const isUsable = async (token: string) =>
      (await service.post(TOKEN, agentTokenBody({ client_id: clientId }), bearer(token))).status === 200;
    expect(await isUsable(first)).toBe(true);
    await change('PATCH', suspended, { suspended: true });
    expect(await isUsable(first)).toBe(false);
    const { status, body } = await request();
    expect({ status, error: body.error }).toEqual(refusal);
    service.clock.advance({ seconds: 7 });
    await change('PATCH', suspended, { suspended: false });
    service.clock.advance({ seconds: 2 });
    expect(await isUsable(first)).toBe(false);
    expect(await isUsable(await tokenOf())).toBe(true);
    await change('PATCH', suspended, { suspended: true });
    if (kind !== 'organization') return;
    expect((await service.admin('DELETE', suspended)).status).toBeLessThan(300);
    service.clock.advance({ seconds: 2 * DAY_SECONDS });
    await runOffboarding(service);
    expect(await rows()).toBe(0);
  });
});

describe('protocol §8.3: the agent of a client', () => {
  it('is in the entry by its present email, in responses, lists and the export', async () => {
    await change('PATCH', agent.path, { email: `new-${agent.email}` });
    expect((await service.admin('GET', path)).body.agent).toBe(`new-${agent.email}`);
    const { clients } = (await service.admin('GET', `/admin/clients?organization_id=${ACME}&limit=200`)).body;
    expect(clients).toContainEqual(expect.objectContaining({ client_id: clientId, agent: `new-${agent.email}` }));
    expect(await exportOf(service)).toContain(`agent: new-${agent.email}`);
  });

  it.each([
    ['is unknown', { agent: 'unknown@acme.example' }, 'agent: not a registered agent'],
    ['is no email', { agent: 'acme' }, 'agent: must be an email'],
    ['belongs to another organization', { organization_id: RIVAL }, 'agent: an agent of another organization'],
    ['is given for a public client', { organization_id: undefined }, 'agent: only for a client of type server'],
    ['is given for a web client', { client_type: 'web', client_secret: undefined }, 'agent: only for a client of type'],
  ])('rejects an entry whose agent %s', async (_title, fields, hint) => {
    const { response } = await newClient(fields);
    expect({ status: response.status, hint: response.body.error_hint }).toEqual({
      status: 400,
      hint: expect.stringContaining(hint),
    });
  });

  it('may be created by the same registry file', async () => {
    const registry = testRegistry();
    const [email, client_id] = [`${randomUUID()}@acme.example`, randomUUID()];
    const entry = { client_id, name: 'Backend', client_type: 'server', client_secret: BACKEND_SECRET };
    registry.clients.push({ ...entry, organization_id: ACME, grant_types: GRANTS, scopes: BOTH_SCOPES, agent: email });
    const listed = { email, name: 'Backend', password: 'a password of the agent', organization_id: ACME };
    registry.agents.push({ ...listed, scopes: BOTH_SCOPES });
    await applyRegistry(service, registry);
    clientId = client_id;
    const first = await tokenOf();
    const outcomes = (await applyRegistry(service, registry)).map(({ outcome }) => outcome);
    expect(new Set(outcomes)).toEqual(new Set(['unchanged']));
    expect(await isValid(first)).toBe(true);
    registry.agents.pop();
    await expect(
      applyRegistry(service, { ...registry, clients: [{ ...registry.clients.at(-1), agent: 'x@y.example' }] }),
    ).rejects.toThrow('clients[0].agent: not a registered agent');
  });
});
