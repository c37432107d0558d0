import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidRequest, expectInvalidToken, INVALID_MESSAGE } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME, ACME_BACKEND, ACME_ORIGIN, ACME_SITE } from '../support/test-registry.js';
import { request, type TestResponse } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const SITE = 'https://new.example';

it('protocol §9.1: /admin does not exist without an admin token', async () => {
  const without = await serviceOfTest({ environment: { ADMIN_TOKENS: '' } });
  for (const path of ['clients', 'clients/x', 'customers/x']) {
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) {
      const { status, headers } = await without.admin(method, `/admin/${path}`);
      expect({ status, allow: headers.get('allow') }).toEqual({ status: 404, allow: null });
    }
  }
});

const service = useService();

describe('protocol §9.1: /admin on the management port', () => {
  const admin = (method: string, path: string, body?: string | object) => service.admin(method, `/admin/${path}`, body);
  const organization = randomUUID();
  const client = { client_id: 'new-site', name: 'New site', client_type: 'web', organization_id: organization };
  const agent = {
    email: 'New.Agent@new.example',
    name: 'New agent',
    password: 'a long pass phrase of the agent',
    organization_id: organization,
    scopes: ['customers:own'],
  };

  beforeAll(async () => {
    expect((await admin('POST', 'organizations', { id: organization, name: 'New' })).status).toBe(201);
  });

  const newToken = (client_id: string, headers: Record<string, string> = {}) =>
    service.post(TOKEN, cookieBody({ client_id, organization_id: organization, redirect_uri: undefined }), headers);
  const conflict = (response: TestResponse, hint: RegExp) =>
    expectError(response, { status: 409, error: 'conflict', hint });

  it('treats a null field as a field that was left out, at any depth', async () => {
    const [id, license] = [randomUUID(), { chat_between_groups: null }];
    const created = await admin('POST', 'organizations', { id, name: 'Null', license, grants: null });
    expect(created).toMatchObject({ status: 201, body: { license: { chat_between_groups: true } } });
    const empty = { redirect_uris: null, redirect_uri_match: null, origins: null, scopes: null, client_secret: null };
    const response = await admin('POST', 'clients', { ...client, ...empty, client_id: 'null-site' });
    expect(response).toMatchObject({ status: 201, body: { redirect_uri_match: 'exact' } });
    expect(await admin('PATCH', `organizations/${id}`, { license })).toMatchObject({ status: 200, body: created.body });
  });

  it('rejects the key of a prototype as a field name, at any depth', async () => {
    const bodyWith = (inner: string) => `{"client_id":"strange","name":"x","client_type":"web",${inner}}`;
    for (const name of ['constructor', '__proto__']) {
      const hint = new RegExp(`${name}: unknown field$`);
      expectInvalidRequest(await admin('POST', 'clients', bodyWith(`"${name}":{"x":1}`)), hint);
      expectInvalidRequest(await admin('POST', 'clients', bodyWith(`"grants":{"${name}":1}`)), hint);
      expectInvalidRequest(await admin('PATCH', `organizations/${organization}`, `{"license":{"${name}":1}}`), hint);
    }
  });

  it('rejects a name with control characters', async () => {
    const response = await admin('POST', 'organizations', { id: randomUUID(), name: 'a\0b' });
    expectInvalidRequest(response, /^name: must not have control characters$/);
  });

  it('creates, reads, lists, changes and deletes an application in the shape of the registry file', async () => {
    const created = await admin('POST', 'clients', client);
    const defaults = { redirect_uris: [], redirect_uri_match: 'exact', origins: [], scopes: [], grants: {} };
    const entry = { ...client, ...defaults, has_secret: false, suspended: false, from_file: false };
    expect({ status: created.status, body: created.body }).toEqual({ status: 201, body: entry });
    expect((await admin('GET', 'clients/new-site')).body).toEqual(entry);
    expect((await admin('GET', 'clients')).body.clients).toContainEqual(entry);
    const changed = await admin('PATCH', 'clients/new-site', { redirect_uris: [`${SITE}/`], organization_id: null });
    const { organization_id: _, ...isPublic } = entry;
    expect(changed.body).toEqual({ ...isPublic, redirect_uris: [`${SITE}/`] });
    await admin('PATCH', 'clients/new-site', { organization_id: organization });
    const changes = service.audit.map(({ actor, subject, details }) => ({ actor, subject, details }));
    const common = { actor: { kind: 'operator', id: 'operator' }, subject: { kind: 'client', id: 'new-site' } };
    expect(changes).toEqual([
      { ...common, details: { change: 'created', fields: [] } },
      { ...common, details: { change: 'changed', fields: ['organization_id', 'redirect_uris'] } },
      { ...common, details: { change: 'changed', fields: ['organization_id'] } },
    ]);
  });

  it('applies a change at once to tokens and CORS, and a deletion too', async () => {
    const first = await newToken('new-site', { origin: SITE });
    expect(first.status).toBe(200);
    expect(first.headers.get('access-control-allow-origin')).toBe(SITE);
    await admin('PATCH', 'clients/new-site', { redirect_uris: [] });
    expect((await newToken('new-site', { origin: SITE })).status).toBe(400);
    expect((await admin('DELETE', 'clients/new-site')).status).toBe(200);
    expect((await newToken('new-site')).status).toBe(400);
    expect((await service.send('GET', '/v2/customer/info', bearer(first.body.access_token))).status).toBe(401);
    expectError(await admin('GET', 'clients/new-site'), { status: 404, error: 'not_found', hint: undefined });
  });

  it('changes and deletes entries that a registry file brought', async () => {
    const changed = await admin('PATCH', `clients/${ACME_SITE}`, { name: 'Mine' });
    expect(changed).toMatchObject({ status: 200, body: { name: 'Mine', from_file: true } });
    expect((await admin('POST', `clients/${ACME_BACKEND}/secret`, {})).status).toBe(200);
    expect((await admin('DELETE', `clients/${ACME_BACKEND}`)).status).toBe(200);
    expect((await service.post(TOKEN, cookieBody(), { origin: ACME_ORIGIN })).status).toBe(200);
  });

  it('responds with a conflict if an entry exists already', async () => {
    const again = { ...client, client_id: 'another-site' };
    expect((await admin('POST', 'clients', again)).status).toBe(201);
    conflict(await admin('POST', 'clients', again), /^client_id: already exists$/);
    expectInvalidRequest(
      await admin('PATCH', 'clients/another-site', { client_id: 'other' }),
      /^client_id: cannot be changed/,
    );
  });

  it('a merge patch changes nested fields and removes a field by null (RFC 7396)', async () => {
    const id = randomUUID();
    const license = { chat_between_groups: false };
    await admin('POST', 'organizations', { id, name: 'Nested', license });
    expect((await admin('PATCH', `organizations/${id}`, { license: {} })).body.license).toEqual(license);
    const without = await admin('PATCH', `organizations/${id}`, { license: { chat_between_groups: null } });
    expect(without.body.license).toEqual({ chat_between_groups: true });
  });

  it('a change to a short text does not change the password of an agent', async () => {
    const created = await admin('POST', 'agents', { ...agent, email: 'lasting@new.example' });
    expect((await admin('PATCH', `agents/${created.body.id}`, { password: 'MARK-7!' })).status).toBe(400);
  });

  it('changes the secret of a resource server, which no response and no audit event shows', async () => {
    const server = { id: randomUUID(), secret: 'MARKED-1'.repeat(4), audiences: ['customer-api'] };
    const path = `resource-servers/${server.id}`;
    const shown = { id: server.id, audiences: server.audiences, has_secret: true, from_file: false };
    expect((await admin('POST', 'resource-servers', server)).body).toEqual(shown);
    const secret = 'MARKED-2'.repeat(4);
    expect((await admin('PATCH', path, { secret })).body).toEqual(shown);
    const feed = async (of: string) =>
      (await manage(service, 'GET', '/oauth2/revocations', basic(server.id, of))).status;
    expect([await feed(server.secret), await feed(secret)]).toEqual([401, 200]);
    expectInvalidRequest(
      await admin('PATCH', path, { secret: null }),
      'secret: required without jwks, jwks_uri and federated',
    );
    const { body: put } = await admin('PUT', path, { audiences: ['agent-api'], secret: server.secret });
    expect(put).toEqual({ ...shown, audiences: ['agent-api'] });
    const events = service.audit.filter(({ subject }) => subject?.id === server.id);
    expect(events.map(({ details }) => details?.fields)).toEqual([[], ['secret'], ['audiences', 'secret']]);
    expect(JSON.stringify(events)).not.toContain('MARKED');
  });

  it('changes whose events a resource server reads, which needs the audience of customers', async () => {
    const server = { id: randomUUID(), secret: randomUUID(), audiences: ['customer-api'], events: [organization] };
    const path = `resource-servers/${server.id}`;
    expect((await admin('POST', 'resource-servers', server)).body).toMatchObject({ events: [organization] });
    const read = async () => (await manage(service, 'GET', '/oauth2/events', basic(server.id, server.secret))).status;
    expect(await read()).toBe(200);
    expectInvalidRequest(await admin('PATCH', path, { audiences: ['agent-api'] }), /^events: .*customer-api/);
    expect((await admin('PATCH', path, { events: 'all' })).body).toMatchObject({ events: 'all' });
    expect((await admin('PATCH', path, { events: null })).body).not.toHaveProperty('events');
    expect(await read()).toBe(403);
    const { id: _id, ...fields } = server;
    expect((await admin('PUT', path, fields)).body).toMatchObject({ events: [organization] });
    expect(await read()).toBe(200);
  });

  it('loses none of the parallel writes, and none of them fails because of another', async () => {
    const many = Array.from({ length: 12 }, (_, n) => `parallel-${n}`);
    const created = await Promise.all(many.map((client_id) => admin('POST', 'clients', { ...client, client_id })));
    expect(created.map(({ status }) => status)).toEqual(many.map(() => 201));
    const same = await Promise.all(many.map(() => admin('POST', 'clients', { ...client, client_id: 'same' })));
    expect(same.map(({ status }) => status).sort()).toEqual([201, ...many.slice(1).map(() => 409)]);
    const fields = { name: 'Renamed', origins: ['https://a.example'], scopes: ['customers:own'] };
    await Promise.all(Object.entries(fields).map(([name, value]) => admin('PATCH', 'clients/same', { [name]: value })));
    expect((await admin('GET', 'clients/same')).body).toMatchObject(fields);
  });

  it('stores the email of an agent in lower case and only once, and another email ends no token', async () => {
    await admin('POST', 'clients', { ...client, client_id: 'agent-site', scopes: agent.scopes });
    const { status, body } = await admin('POST', 'agents', agent);
    expect([status, body.email, body.password]).toEqual([201, 'new.agent@new.example', undefined]);
    const again = await admin('POST', 'agents', { ...agent, email: agent.email.toUpperCase() });
    conflict(again, /^email: belongs to another agent/);
    const token = await issueAgentToken(service, { email: body.email, clientId: 'agent-site' });
    expect((await admin('PATCH', `agents/${body.id}`, { email: 'other@new.example' })).status).toBe(200);
    const response = await service.post(TOKEN, agentTokenBody({ client_id: 'agent-site' }), bearer(token));
    expect(response.status).toBe(200);
  });
});

it.each(['a@\udfffnew.example', '\ud800@new.example', 'no-email'])('%j is no email of an agent', async (email) => {
  expectInvalidRequest(await service.admin('POST', '/admin/agents', { ...AGENT, email }), /^email: must be an email/);
});

const HOSTILE_KEYS = ['x'.repeat(10_000), 'a%00b', '%F0%9F%92%A9', '__proto__', '..%2f'];
const TENANT = randomUUID();
/** Hundreds of requests, one after another. */
const SLOW = { timeout: 300_000 };
const AGENT = { email: 'hostile@acme.example', name: 'H', password: 'a long pass phrase', organization_id: ACME };

/** Method and path of each admin route, with `{parameters}`. */
let routes: [method: string, path: string][];

beforeAll(async () => {
  const { paths } = (await request(`${service.managementUrl}/openapi.json`, {})).body;
  routes = Object.keys(paths)
    .filter((path) => path.startsWith('/admin/'))
    .flatMap((path) => Object.keys(paths[path]).map((method): [string, string] => [method.toUpperCase(), path]))
    .filter(([method]) => method !== 'SERVERS');
  expect((await service.admin('POST', '/admin/organizations', { id: TENANT, name: 'Hostile' })).status).toBe(201);
  const client = { client_id: 'hostile', name: 'H', client_type: 'server', organization_id: TENANT };
  expect((await service.admin('POST', '/admin/clients', client)).status).toBe(201);
});

/** The routes that read a body, with an existing key in their path. */
async function routesWithBody(): Promise<[method: string, path: string][]> {
  const listed = async (list: string) => (await service.admin('GET', `/admin/${list}?limit=1`)).body;
  const keys: Record<string, string> = {
    organizations: TENANT,
    clients: 'hostile',
    agents: (await listed('agents')).agents[0].id,
    'resource-servers': 'hostile-server',
  };
  return routes
    .filter(([method]) => method === 'POST' || method === 'PATCH')
    .filter(([, path]) => path.split('/')[2] !== 'customers')
    .map(([method, path]) => [method, path.replace(/\{\w+\}/, keys[path.split('/')[2] as string] ?? 'x')]);
}

describe('each route of the admin API', SLOW, () => {
  it('responds with 401 to a request without the token of the operator', async () => {
    const { access_token } = await newCustomer(service);
    for (const [method, path] of routes)
      for (const headers of [{}, bearer('wrong-admin-token'), bearer(access_token)])
        expectInvalidToken(await manage(service, method, path.replaceAll(/\{\w+\}/g, 'x'), headers));
  });

  it('responds with 404 or 400 to a hostile key, of any length', async () => {
    const withKey = routes.filter(([, path]) => path.includes('{'));
    expect(withKey.length).toBeGreaterThan(13);
    for (const [method, path] of withKey) {
      for (const key of HOSTILE_KEYS) {
        const sent = method === 'GET' ? undefined : {};
        const { status, body } = await service.admin(method, path.replace(/\{\w+\}/, key), sent);
        expect([status, body.error], `${method} ${path} ${key.slice(0, 20)}`).toEqual(
          status === 400 ? [400, 'invalid_request'] : [404, 'not_found'],
        );
      }
      const broken = await service.admin(method, path.replace(/\{\w+\}/, '%E0%A4%A'));
      expect([method, path, broken.status]).toEqual([method, path, 400]);
    }
  });

  it('ignores a body that the route does not read', async () => {
    for (const body of ['not JSON', '[]', 'x'.repeat(20_000)]) {
      expect((await service.admin('DELETE', '/admin/clients/unknown', body)).status).toBe(404);
      expect((await service.admin('DELETE', `/admin/customers/${randomUUID()}`, body)).status).toBe(200);
    }
  });
});

describe('each route of the admin API that reads a body', SLOW, () => {
  it('rejects a body that is not a JSON object', async () => {
    for (const [method, path] of await routesWithBody()) {
      for (const body of ['{', 'x=1']) {
        const expected = { status: 400, error: 'invalid_request', description: INVALID_MESSAGE, hint: /^body: / };
        expectError(await service.admin(method, path, body), expected);
      }
      for (const body of ['[]', 'null', '7'])
        expectInvalidRequest(await service.admin(method, path, body), 'body: must be a JSON object');
      for (const body of ['{"name":"a","name":"b"}', '{"old_valid_for":1,"old_valid_f\\u006fr":2}'])
        expectInvalidRequest(await service.admin(method, path, body), 'body: a parameter is given more than once');
    }
  });

  it('rejects each field of a wrong type, and never fails', async () => {
    const complete: Record<string, object> = {
      organizations: { id: randomUUID(), name: 'N', license: {}, public_clients: [], grants: {} },
      clients: {
        ...{ client_id: 'n', name: 'N', client_type: 'web', organization_id: ACME, client_secret: 's'.repeat(32) },
        ...{ redirect_uris: [], redirect_uri_match: 'exact', origins: [], grant_types: [], scopes: [], grants: {} },
      },
      agents: { ...AGENT, scopes: [] },
      'resource-servers': { id: 'n', secret: 's'.repeat(32), audiences: [] },
    };
    const wrong = [7, 'x'.repeat(15_000), { a: 1 }, [{}], [null], ''];
    for (const [list, entry] of Object.entries(complete)) {
      for (const field of Object.keys(entry)) {
        for (const value of wrong) {
          const { status, body } = await service.admin('POST', `/admin/${list}`, { ...entry, [field]: value });
          expect([list, field, status, body.error]).toEqual([list, field, 400, 'invalid_request']);
          expect(body.error_hint).toMatch(new RegExp(`^${field}\\b`));
        }
      }
    }
  });

  it.each(['60', 1.5, -1, 2_592_001])(
    'rejects old_valid_for %j for a new secret, and changes no secret',
    async (value) => {
      const before = (await service.admin('GET', '/admin/clients/hostile')).text;
      const response = await service.admin('POST', '/admin/clients/hostile/secret', { old_valid_for: value });
      expectInvalidRequest(response, /^old_valid_for: /);
      expect((await service.admin('GET', '/admin/clients/hostile')).text).toBe(before);
    },
  );
});
