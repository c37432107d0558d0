import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { lockRevision } from '../../../src/registry/registry-revision.js';
import { bearer } from '../../support/authorization-headers.js';
import { deferred } from '../../support/deferred.js';
import { expectError, expectInvalidRequest } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { applyRegistry } from '../../support/registry-files.js';
import { ACME, ACME_SITE, testRegistry } from '../../support/test-registry.js';
import { collectTimers } from '../../support/timers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const service = useService();
const admin = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
  manage(service, method, `/admin/${path}`, { ...bearer(ADMIN_TOKEN), ...headers }, body);
const etagOf = async (path: string) => (await admin('GET', path)).headers.get('etag') ?? '';
const revision = async () =>
  (await service.application.get(DataSource).query('SELECT revision FROM registry_revision'))[0].revision;
const client = (more: object = {}) => ({ name: 'Put', client_type: 'web', organization_id: ACME, ...more });

describe('PUT /admin/<list>/<key>', () => {
  it('creates an entry, replaces its fields, and changes nothing if they are equal', async () => {
    const path = `clients/${randomUUID()}`;
    const secret = 's'.repeat(32);
    const created = await admin('PUT', path, client({ client_secret: secret, scopes: ['a'], grant_types: ['cookie'] }));
    expect(created).toMatchObject({ status: 201, body: { name: 'Put', has_secret: true, scopes: ['a'] } });
    const etag = await etagOf(path);
    expect(created.headers.get('etag')).toBe(etag);
    const replaced = await admin('PUT', path, client({ name: 'Replaced' }));
    expect(replaced).toMatchObject({ status: 200, body: { name: 'Replaced', has_secret: true, scopes: [] } });
    expect(replaced.body).not.toHaveProperty('grant_types');
    expect(replaced.headers.get('etag')).not.toBe(etag);
    const { details } = service.audit.filter(({ event }) => event === 'registry.changed').at(-1) ?? {};
    expect(details, 'fields and not columns').toEqual({
      change: 'changed',
      fields: expect.arrayContaining(['name', 'scopes', 'grant_types']),
    });
    const before = [await revision(), service.audit.length];
    const again = await admin('PUT', path, client({ name: 'Replaced', client_secret: secret }));
    expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: replaced.body });
    const patched = await admin('PATCH', path, { name: 'Replaced', scopes: [], client_secret: secret });
    expect({ status: patched.status, body: patched.body }).toEqual({ status: 200, body: replaced.body });
    expect([await revision(), service.audit.length]).toEqual(before);
  });

  it('creates an agent with an id of the caller, and the same password ends no token', async () => {
    const [id, email] = [randomUUID(), `${randomUUID()}@acme.example`];
    const entry = { email, name: 'Agent', password: 'a password of the agent', organization_id: ACME };
    const agent = { ...entry, scopes: ['customers:own'] };
    expect(await admin('PUT', `agents/${id}`, agent)).toMatchObject({ status: 201, body: { id, email } });
    const token = await issueAgentToken(service, { email });
    const isValid = async () => (await service.send('DELETE', '/v2/token', bearer(token))).status === 200;
    expect((await admin('PUT', `agents/${id}`, { ...agent, name: 'Renamed' })).status).toBe(200);
    expect((await admin('PATCH', `agents/${id}`, { password: entry.password })).status).toBe(200);
    const active = async () =>
      (await manage(service, 'POST', '/oauth2/introspect', bearer(ADMIN_TOKEN), { token })).body.active;
    expect(await active()).toBe(true);
    expect((await admin('PUT', `agents/${id}`, { ...agent, password: 'another password' })).status).toBe(200);
    expect(await active()).toBe(false);
    expect(await isValid()).toBe(false);
    expectInvalidRequest(await admin('PUT', 'agents/no-uuid', agent), 'id: must be a UUID in lower case');
    const other = await admin('PUT', `agents/${randomUUID()}`, agent);
    expectError(other, { status: 409, error: 'conflict', hint: 'email: belongs to another agent' });
  });

  it('shows in each response whether an agent has a password, and takes no such field in a request', async () => {
    const [path, name] = [`agents/${randomUUID()}`, randomUUID()];
    const agent = { email: `${name}@acme.example`, name, organization_id: ACME };
    const shown = async () => {
      const { agents } = (await admin('GET', `agents?organization_id=${ACME}`)).body;
      const listed = agents.find((each: Record<string, unknown>) => each.name === name);
      return [(await admin('GET', path)).body.has_password, listed.has_password];
    };
    expect((await admin('PUT', path, agent)).body.has_password).toBe(false);
    expect(await shown()).toEqual([false, false]);
    const etag = await etagOf(path);
    expect((await admin('PATCH', path, { password: 'a password of the agent' })).body.has_password).toBe(true);
    expect(await shown()).toEqual([true, true]);
    expect(await etagOf(path)).not.toBe(etag);
    expect((await admin('PATCH', path, { password: null })).body.has_password).toBe(false);
    expectInvalidRequest(await admin('PATCH', path, { has_password: true }), 'has_password: unknown field');
  });

  it('rejects values of wrong types for an agent that exists', async () => {
    const path = `agents/${randomUUID()}`;
    const agent = { email: `${randomUUID()}@acme.example`, name: 'Agent', organization_id: ACME };
    expect((await admin('PUT', path, agent)).status).toBe(201);
    for (const email of [[agent.email], {}, 7, true, null])
      for (const method of ['PUT', 'PATCH'] as const) {
        const { status, body } = await admin(method, path, { ...agent, email });
        expect({ method, email, status, error: body.error }).toEqual({
          method,
          email,
          status: 400,
          error: 'invalid_request',
        });
      }
  });

  it('rejects another key in the body, and keeps public_clients and suspended of an organization', async () => {
    const id = randomUUID();
    const path = `organizations/${id}`;
    expectInvalidRequest(await admin('PUT', path, { id: randomUUID(), name: 'X' }), 'id: cannot be changed');
    expect((await admin('PUT', path, { name: 'X', public_clients: 'all', suspended: true })).status).toBe(201);
    const { body } = await admin('PUT', path, { id, name: 'Y', idle_days: 3 });
    expect(body).toMatchObject({ name: 'Y', public_clients: 'all', suspended: true, idle_days: 3 });
  });
});

describe('If-Match', () => {
  const changed = { status: 412, error: 'precondition_failed', hint: 'If-Match: not the ETag of the entry' };

  it('lets one of two changes of the same state pass, and protects a deletion', async () => {
    const path = `clients/${randomUUID()}`;
    expectError(await admin('PUT', path, client(), { 'if-match': '*' }), changed);
    await admin('PUT', path, client());
    const ifMatch = { 'if-match': await etagOf(path) };
    const names = ['One', 'Two', 'Three'];
    const responses = await Promise.all(names.map((name) => admin('PATCH', path, { name }, ifMatch)));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 412, 412]);
    const { name } = (await admin('GET', path)).body;
    expect(names[responses.findIndex(({ status }) => status === 200)]).toBe(name);
    for (const method of ['PUT', 'PATCH', 'DELETE'])
      expectError(await admin(method, path, client({ name: 'Lost' }), ifMatch), changed);
    expect((await admin('GET', path)).body.name).toBe(name);
    const list = { 'if-match': `"0", ${await etagOf(path)}` };
    expect((await admin('DELETE', path, undefined, list)).status).toBe(200);
  });

  it('names the state of an agent, which a session of the agent does not change', async () => {
    const email = `${randomUUID()}@acme.example`;
    const agent = { email, name: 'Agent', password: 'a password of the agent', organization_id: ACME };
    const { id } = (await admin('POST', 'agents', { ...agent, scopes: ['customers:own'] })).body;
    const etag = await etagOf(`agents/${id}`);
    await issueAgentToken(service, { email });
    expect(await etagOf(`agents/${id}`)).toBe(etag);
  });
});

it('the OpenAPI document has ETag and If-Match at the routes that have them', async () => {
  const { paths } = (await admin('GET', '../openapi.json')).body;
  type Operation = { parameters: { name: string; in: string }[]; responses: Record<string, { headers?: object }> };
  const described = (path: string, method: string) => {
    const { parameters, responses }: Operation = paths[path][method];
    const isSuccess = ([status]: [string, unknown]) => status.startsWith('2');
    const returned = Object.entries(responses).filter(isSuccess);
    return [
      parameters.filter((each) => each.in === 'header').map(({ name }) => name),
      new Set(returned.flatMap(([, { headers = {} }]) => Object.keys(headers))),
    ];
  };
  for (const list of ['organizations', 'clients', 'agents', 'resource-servers']) {
    const path = `/admin/${list}/{key}`;
    expect(described(`/admin/${list}`, 'post')).toEqual([[], new Set(['ETag'])]);
    expect(described(path, 'get')).toEqual([[], new Set(['ETag'])]);
    for (const method of ['put', 'patch']) expect(described(path, method)).toEqual([['If-Match'], new Set(['ETag'])]);
    const deleted = path.startsWith('/admin/organizations') ? ['ETag'] : [];
    expect(described(path, 'delete')).toEqual([['If-Match'], new Set(deleted)]);
  }
});

it('a response 400 names all violations of the fields, of the references and of the settings', async () => {
  const entry = { client_type: 'toaster', organization_id: randomUUID(), grants: { unknown: {} }, scopes: [' '] };
  for (const [method, path] of [
    ['POST', 'clients'],
    ['PUT', `clients/${randomUUID()}`],
  ] as const) {
    const { status, body } = await admin(method, path, { client_id: path.slice(8) || 'x', name: '', ...entry });
    expect(status).toBe(400);
    const fields = (body.error_hint as string).split('\n').map((violation) => violation.split(/[:.]/)[0]);
    expect(fields.sort()).toEqual(['client_type', 'grants', 'name', 'organization_id', 'scopes']);
  }
});

it('a list of an entry has at most 65,535 bytes as JSON, on each database', async () => {
  const registry = testRegistry();
  const urlOf = (index: number) => `https://acme.example/${String(index).padStart(4, '0')}/${'x'.repeat(970)}`;
  const withUris = (count: number) =>
    (registry.clients as { client_id: string }[]).map((each) =>
      each.client_id === ACME_SITE
        ? { ...each, redirect_uris: Array.from({ length: count }, (_, index) => urlOf(index)) }
        : each,
    );
  await applyRegistry(service, { ...registry, clients: withUris(64) });
  expect((await admin('GET', `clients/${ACME_SITE}`)).body.redirect_uris).toHaveLength(64);
  const rejected = await applyRegistry(service, { ...registry, clients: withUris(66) }).catch((error) => error);
  expect(rejected.violations).toEqual([
    expect.stringMatching(/^clients\[\d+\]\.redirect_uris: must have at most 65535 bytes as JSON$/),
  ]);
});

describe('a change of the registry that waits for another change', () => {
  /** Begins another change, which ends when the test says so. */
  async function beginChange(): Promise<() => Promise<void>> {
    const [begun, ended] = [deferred(), deferred()];
    const change = service.application.get(Database).transaction(async (manager) => {
      await lockRevision(manager);
      begun.resolve();
      await ended.promise;
    });
    await begun.promise;
    return () => {
      ended.resolve();
      return change;
    };
  }

  /** A request of each method, and how many of their changes the audit has. */
  async function changesOfEachMethod() {
    const [path, email] = [`agents/${randomUUID()}`, `${randomUUID()}@acme.example`];
    const agent = { email, name: 'Agent', password: 'a password of the agent', organization_id: ACME };
    const replaced = `clients/${randomUUID()}`;
    for (const [of, entry] of [[path, agent] as const, [replaced, client()] as const])
      expect((await admin('PUT', of, entry)).status).toBe(201);
    const { length } = service.audit;
    return {
      send: () => [
        admin('POST', 'organizations', { id: randomUUID(), name: 'Late' }),
        admin('PUT', replaced, client({ name: 'Replaced' })),
        admin('PATCH', path, { password: 'another password' }),
      ],
      audited: () => service.audit.slice(length).filter(({ event }) => event === 'registry.changed').length,
    };
  }

  it('succeeds after a wait that is longer than the time of other requests', async () => {
    const { send, audited } = await changesOfEachMethod();
    const endOther = await beginChange();
    const responses = send();
    await sleep(3_000);
    await endOther();
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([201, 200, 200]);
    expect(audited()).toBe(3);
  });

  it('gets 503 after 10 s, and is carried out and audited if its turn comes then', async () => {
    const { send, audited } = await changesOfEachMethod();
    const endOther = await beginChange();
    const ends = collectTimers(10_000, 'setInterval');
    const responses = send();
    await expect.poll(() => ends).toHaveLength(3);
    for (const end of ends) end();
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(audited()).toBe(0);
    await endOther();
    await expect.poll(audited).toBe(3);
  });
});
