import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, implicitToken } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { ACME, ACME_BACKEND, ACME_ORIGIN, ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestResponse } from '../support/test-service.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const OPERATOR = { authorization: `Bearer ${ADMIN_TOKEN}` };
const SITE = 'https://new.example';

it('protocol §9.1: /admin does not exist without ADMIN_TOKEN', async () => {
  const without = await startTestService();
  for (const path of ['clients', 'clients/x', 'organizations', 'agents', 'resource-servers', 'identities/x']) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status, headers } = await manage(without, method, `/admin/${path}`, OPERATOR);
      expect({ status, allow: headers.get('allow') }).toEqual({ status: 404, allow: null });
    }
  }
  await without.stop();
});

describe('protocol §9.1: /admin on the management port', () => {
  const service = useService();
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
  const invalid = (response: TestResponse, hint: RegExp) =>
    expectError(response, { status: 400, error: 'invalid_request', hint });
  const conflict = (response: TestResponse, hint: RegExp) =>
    expectError(response, { status: 409, error: 'conflict', hint });

  it('treats a null field as a field that was left out, at any depth', async () => {
    const id = randomUUID();
    const license = { chat_between_groups: null };
    const created = await admin('POST', 'organizations', { id, name: 'Null', license, grants: null });
    expect({ status: created.status, license: created.body.license }).toEqual({
      status: 201,
      license: { chat_between_groups: true },
    });
    const empty = { redirect_uris: null, redirect_uri_match: null, origins: null, scopes: null, client_secret: null };
    const response = await admin('POST', 'clients', { ...client, ...empty, client_id: 'null-site' });
    expect({ status: response.status, match: response.body.redirect_uri_match }).toEqual({
      status: 201,
      match: 'exact',
    });
    const changed = await admin('PATCH', `organizations/${id}`, { license });
    expect({ status: changed.status, body: changed.body }).toEqual({ status: 200, body: created.body });
    invalid(await admin('POST', 'clients', { ...client, client_id: 'null-site-2', scopes: [null] }), /^scopes/);
  });

  it.each(['constructor', '__proto__', 'prototype'])(
    'rejects the prototype key %s as a field name, at any depth',
    async (name) => {
      const bodyWith = (inner: string) => `{"client_id":"strange","name":"x","client_type":"web",${inner}}`;
      for (const value of ['1', '"x"', '{"x":1}']) {
        const hint = new RegExp(`${name}: unknown field$`);
        invalid(await admin('POST', 'clients', bodyWith(`"${name}":${value}`)), hint);
        invalid(await admin('POST', 'clients', bodyWith(`"unknown":{"${name}":${value}}`)), hint);
        invalid(await admin('POST', 'clients', bodyWith(`"grants":{"${name}":${value}}`)), hint);
        invalid(await admin('PATCH', `organizations/${organization}`, `{"license":{"${name}":${value}}}`), hint);
      }
    },
  );

  it.each(['\0', 'a\0b', 'a\nb', '\x7f'])('rejects a name with control characters', async (name) => {
    const id = randomUUID();
    invalid(await admin('POST', 'organizations', { id, name }), /^name: must not have control characters$/);
    expect((await admin('GET', `organizations/${id}`)).status).toBe(404);
  });

  it('creates, reads, lists, changes and deletes an application in the shape of the registry file', async () => {
    const created = await admin('POST', 'clients', client);
    const entry = {
      ...client,
      redirect_uris: [],
      redirect_uri_match: 'exact',
      origins: [],
      scopes: [],
      grants: {},
      has_secret: false,
      owned_by_file: false,
    };
    expect({ status: created.status, body: created.body }).toEqual({ status: 201, body: entry });
    expect((await admin('GET', 'clients/new-site')).body).toEqual(entry);
    expect((await admin('GET', 'clients')).body.clients).toContainEqual(entry);
    const changed = await admin('PATCH', 'clients/new-site', { redirect_uris: [`${SITE}/`], organization_id: null });
    const { organization_id: _, ...isPublic } = entry;
    expect(changed.body).toEqual({ ...isPublic, redirect_uris: [`${SITE}/`] });
    await admin('PATCH', 'clients/new-site', { organization_id: organization });
    expect(
      service.audit.slice(-3).map(({ event, actor, subject, details }) => [event, actor, subject, details]),
    ).toEqual([
      ['registry.changed', { kind: 'operator' }, { kind: 'client', id: 'new-site' }, { change: 'created', fields: [] }],
      ...[['redirect_uris', 'organization_id'], ['organization_id']].map((fields) => [
        'registry.changed',
        { kind: 'operator' },
        { kind: 'client', id: 'new-site' },
        { change: 'changed', fields },
      ]),
    ]);
  });

  it('applies a change at once to tokens and CORS, and a deletion too', async () => {
    const first = await newToken('new-site', { origin: SITE });
    expect(first.status).toBe(200);
    expect(first.headers.get('access-control-allow-origin')).toBe(SITE);
    await admin('PATCH', 'clients/new-site', { redirect_uris: [] });
    expect((await newToken('new-site', { origin: SITE })).status).toBe(400);
    service.clock.advance({ seconds: 2 }); // A token of the second in which a revocation happens is revoked too.
    expect((await admin('DELETE', 'clients/new-site')).status).toBe(200);
    expect((await newToken('new-site')).status).toBe(400);
    expect((await service.send('GET', '/v2/customer/info', bearer(first.body.access_token))).status).toBe(401);
    expectError(await admin('GET', 'clients/new-site'), { status: 404, error: 'not_found', hint: undefined });
  });

  it.each([
    ['clients', { ...client, surprise: 1 }, /^surprise: unknown field/],
    ['clients', { ...client, organization_id: randomUUID() }, /^organization_id: not a registered organization/],
    ['organizations', { id: randomUUID(), name: 'X', license: { chat_between_groups: 'yes' } }, /^license\./],
    ['agents', { ...agent, password: undefined }, /^password: required for a new agent/],
    ['agents', { ...agent, password: 'MARK-7!' }, /^password: must be 8 to 1024 characters$/],
    ['clients', { ...client, client_secret: 's'.repeat(31) }, /^client_secret: must be 32 to 256 characters$/],
    ['clients', { ...client, client_secret: 's'.repeat(257) }, /^client_secret: must be 32 to 256 characters$/],
  ])('rejects an entry in %s with a hint about the path and the rule: %j', async (list, body, hint) => {
    const before = (await admin('GET', list)).text;
    invalid(await admin('POST', list, body), hint);
    expect((await admin('GET', list)).text).toBe(before);
  });

  it('responds with a conflict if an entry exists already or belongs to the registry file', async () => {
    await admin('POST', 'clients', client);
    conflict(await admin('POST', 'clients', client), /^client_id: already exists$/);
    for (const [method, path, body] of [
      ['PATCH', `clients/${ACME_SITE}`, { name: 'Mine' }],
      ['DELETE', `clients/${ACME_SITE}`],
      ['POST', `clients/${ACME_BACKEND}/secret`, {}],
      ['DELETE', `organizations/${ACME}`],
    ] as const) {
      conflict(await admin(method, path, body), /the entry is in the registry file/);
    }
    expect((await service.post(TOKEN, cookieBody(), { origin: ACME_ORIGIN })).status).toBe(200);
    conflict(await admin('DELETE', `organizations/${organization}`), /still belong to this organization/);
    invalid(await admin('PATCH', 'clients/new-site', { client_id: 'other' }), /^client_id: cannot be changed/);
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const response = await admin(method, 'clients/new-site%20', method === 'PATCH' ? {} : undefined);
      expectError(response, { status: 404, error: 'not_found', hint: undefined });
    }
  });

  it.each([
    ['clients', { ...client, client_id: 'nulls' }],
    ['organizations', { id: randomUUID(), name: 'Nulls' }],
    ['agents', { ...agent, email: 'nulls@new.example' }],
    ['resource-servers', { id: 'nulls', secret: 'a long secret of a resource server', audiences: ['customer-api'] }],
  ])('a null field of %s is treated as left out or rejected, and never causes a server error', async (list, entry) => {
    const listed = (await admin('GET', list)).body;
    const fields = new Set([...Object.keys(entry), ...Object.values<object[]>(listed).flat().flatMap(Object.keys)]);
    for (const field of [...fields, 'license', 'password', 'secret', 'client_secret']) {
      const { status } = await admin('POST', list, { ...entry, [field]: null });
      expect([field, [201, 400, 409].includes(status)]).toEqual([field, true]);
    }
  });

  it('a merge patch changes nested fields and removes a field by null (RFC 7396)', async () => {
    const id = randomUUID();
    const license = { chat_between_groups: false };
    await admin('POST', 'organizations', { id, name: 'Nested', license });
    expect((await admin('PATCH', `organizations/${id}`, { license: {} })).body.license).toEqual(license);
    const without = await admin('PATCH', `organizations/${id}`, { license: { chat_between_groups: null } });
    expect(without.body.license).toEqual({ chat_between_groups: true });
  });

  it('a change to null or to a short text does not remove the password of an agent', async () => {
    const created = await admin('POST', 'agents', { ...agent, email: 'lasting@new.example' });
    for (const password of [null, 'MARK-7!'])
      expect((await admin('PATCH', `agents/${created.body.id}`, { password })).status).toBe(400);
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

  it('an agent can sign in, and a new password or a deletion revokes the tokens of the agent', async () => {
    await admin('POST', 'clients', {
      ...client,
      client_id: 'agent-site',
      redirect_uris: [`${SITE}/`],
      scopes: agent.scopes,
    });
    const { status, body } = await admin('POST', 'agents', agent);
    expect({ status, email: body.email, password: body.password }).toEqual({
      status: 201,
      email: 'new.agent@new.example',
    });
    const asked = { response_type: 'token', client_id: 'agent-site', redirect_uri: `${SITE}/` };
    const token = await implicitToken(service, asked, agent);
    const newCustomer = (bearerToken: string) =>
      service.post(
        TOKEN,
        cookieBody({
          grant_type: 'agent_token',
          client_id: 'agent-site',
          organization_id: undefined,
          redirect_uri: undefined,
        }),
        bearer(bearerToken),
      );
    expect((await newCustomer(token)).status).toBe(200);
    conflict(
      await admin('POST', 'agents', { ...agent, email: agent.email.toUpperCase() }),
      /^email: belongs to another agent/,
    );
    service.clock.advance({ seconds: 2 });
    expect((await admin('PATCH', `agents/${body.id}`, { password: 'another long pass phrase' })).status).toBe(200);
    expect((await newCustomer(token)).status).toBe(401);
    expect((await new AgentBrowser(service).signIn(agent, asked)).status).toBe(400);
    service.clock.advance({ seconds: 2 });
    const again = await implicitToken(service, asked, { ...agent, password: 'another long pass phrase' });
    expect((await admin('PATCH', `agents/${body.id}`, { email: 'other@new.example' })).body.email).toBe(
      'other@new.example',
    );
    expect((await newCustomer(again)).status).toBe(200);
    service.clock.advance({ seconds: 2 });
    expect((await admin('DELETE', `agents/${body.id}`)).status).toBe(200);
    expect((await newCustomer(again)).status).toBe(401);
  });
});
