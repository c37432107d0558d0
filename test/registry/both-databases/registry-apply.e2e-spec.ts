import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { DataSource } from 'typeorm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { RegistryTransactions } from '../../../src/operator/registry/registry-transactions.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { applyRegistry, registryFileOf, writeFileOf } from '../../support/registry-files.js';
import { ACME } from '../../support/test-registry.js';
import type { TestService } from '../../support/test-service.js';
import { serviceOfTest } from '../../support/use-service.js';

const argon2: typeof import('@node-rs/argon2') = createRequire(import.meta.url)('@node-rs/argon2');

const registryOf = (passwords: Record<string, string>, name = 'Acme') => ({
  organizations: [{ id: ACME, name, public_clients: [] }],
  agents: Object.entries(passwords).map(([email, password]) => ({
    ...{ email, password, name: 'Agent', organization_id: ACME, scopes: [] },
  })),
});
const OLD = registryOf({ 'one@acme.example': 'the first password', 'two@acme.example': 'the second password' });

const sql = ({ application }: TestService, text: string) => application.get(DataSource).query(text);
const generations = async (service: TestService) =>
  (await sql(service, 'SELECT email, generation FROM agent ORDER BY email')).map(
    ({ email, generation }: { email: string; generation: number }) => `${email.split('@')[0]} ${generation}`,
  );
const outcomes = async (service: TestService, registry: object) =>
  (await applyRegistry(service, registry)).map(({ outcome }) => outcome);
const audits = (service: TestService) => service.audit.filter(({ event }) => event === 'registry.changed').length;

afterEach(() => void vi.restoreAllMocks());

it('a file is written and audited once by two processes that apply it at the same time, and ends tokens once', async () => {
  const one = await serviceOfTest({ registry: registryOf({ 'old@acme.example': 'the first password' }) });
  const other = await serviceOfTest({ database: one.database, environment: { REGISTRY_FILE: '' } });
  const changed = { 'old@acme.example': 'the second password', 'new@acme.example': 'the first password' };
  const path = writeFileOf(one, registryOf(changed));
  const before = audits(one) + audits(other);
  // the other process applies the file after this process has hashed the passwords, and before it gets the lock
  const transactions = one.application.get(RegistryTransactions, { strict: false });
  const run = transactions.run.bind(transactions);
  vi.spyOn(transactions, 'run').mockImplementationOnce(async (...parameters) => {
    await registryFileOf(other).apply(path);
    return run(...parameters);
  });
  const applied = await registryFileOf(one).apply(path);
  expect(applied.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged', 'unchanged']);
  expect(await generations(one)).toEqual(['new 0', 'old 1']);
  expect(audits(one) + audits(other) - before).toBe(2);
});

it('the passwords of an unchanged file are compared with one hash, and those of a changed file one by one', async () => {
  const service = await serviceOfTest({ registry: OLD });
  const verify = vi.spyOn(argon2, 'verify');
  expect(await outcomes(service, OLD)).toEqual(['unchanged', 'unchanged', 'unchanged']);
  expect(verify).not.toHaveBeenCalled();
  const changed = registryOf({ 'one@acme.example': 'the first password', 'two@acme.example': 'a third password' });
  expect(await outcomes(service, changed)).toEqual(['unchanged', 'unchanged', 'changed']);
  expect(verify).toHaveBeenCalledTimes(2);
  expect(await generations(service)).toEqual(['one 0', 'two 1']);
  verify.mockClear();
  expect(await outcomes(service, changed)).toEqual(['unchanged', 'unchanged', 'unchanged']);
  expect(verify).not.toHaveBeenCalled();
});

it('a password that the admin API has changed is the one of the file again after the file is applied', async () => {
  const service = await serviceOfTest({ registry: OLD });
  const { agents } = (await service.admin('GET', '/admin/agents')).body;
  const path = `/admin/agents/${agents.find(({ email }: { email: string }) => email.startsWith('two')).id}`;
  expect((await service.admin('PATCH', path, { password: 'another password' })).status).toBe(200);
  expect(await outcomes(service, OLD)).toEqual(['unchanged', 'unchanged', 'changed']);
  expect(await generations(service)).toEqual(['one 0', 'two 2']);
});

it('a file leaves no fast hash of its passwords', async () => {
  const service = await serviceOfTest({ registry: OLD });
  const [{ passwords_hash: stored }] = await sql(service, 'SELECT passwords_hash FROM registry_revision');
  expect(stored).toMatch(/^[0-9a-f]{64}$/);
  const hashRaw = vi.spyOn(argon2, 'hashRaw');
  await outcomes(service, OLD);
  expect(hashRaw).toHaveBeenCalled();
  for (const [text] of hashRaw.mock.calls)
    for (const algorithm of ['sha256', 'sha512-256', 'sha3-256'])
      expect(stored).not.toBe(createHash(algorithm).update(String(text)).digest('hex'));
});

it('a secret of the file that a client has already leaves its earlier secret valid, as a PUT does', async () => {
  const secret = 'the-secret-of-a-client-of-the-file-of-this-test';
  const clientOf = (client_secret: string) => {
    const client = { client_id: 'backend', name: 'Backend', client_type: 'server', organization_id: ACME };
    return { ...client, client_secret };
  };
  const service = await serviceOfTest({ registry: { ...OLD, clients: [clientOf(secret)] } });
  const path = '/admin/clients/backend';
  const renewed = (await service.admin('POST', `${path}/secret`, { old_valid_for: 600 })).body.client_secret;
  const until = (await service.admin('GET', path)).body.previous_secret_expires_at;
  expect(until).toEqual(expect.any(String));
  const clients = [clientOf(renewed)];
  expect(await outcomes(service, { ...OLD, clients })).toEqual(['unchanged', 'unchanged', 'unchanged', 'unchanged']);
  expect((await service.admin('PUT', path, clientOf(renewed))).status).toBe(200);
  expect((await service.admin('GET', path)).body.previous_secret_expires_at).toBe(until);
});

it('a file with the id of a deleted client is invalid, also in a dry run, and changes nothing', async () => {
  const client = { client_id: 'deleted', name: 'Deleted', client_type: 'web', organization_id: ACME };
  const service = await serviceOfTest({ registry: { ...OLD, clients: [client] } });
  expect((await service.admin('DELETE', '/admin/clients/deleted')).status).toBe(200);
  const path = writeFileOf(service, { ...registryOf({}, 'Renamed'), clients: [client] });
  for (const isDryRun of [true, false])
    await expect(registryFileOf(service).apply(path, { isDryRun })).rejects.toThrow(
      'clients[0].client_id: was deleted, and its id is free when',
    );
  expect((await sql(service, 'SELECT name FROM organization'))[0].name).toBe('Acme');
});

describe('a file without the entries of an earlier file', () => {
  const SITE = { client_id: 'site', name: 'Site', client_type: 'web', organization_id: ACME };
  const API = { id: 'api', secret: 'the-secret-of-a-resource-server-of-the-test', audiences: [] };
  const FULL = { ...OLD, clients: [SITE], resource_servers: [API] };
  const NEXT = { organizations: OLD.organizations, agents: OLD.agents.slice(0, 1) };
  const prune = (service: TestService, registry: object) =>
    registryFileOf(service).apply(writeFileOf(service, registry), { prunes: true });
  const statusOf = async (service: TestService, client_id = 'site') =>
    (await service.post(TOKEN, cookieBody({ client_id, redirect_uri: undefined }))).status;

  it('leaves them, and one line of the log names them', async () => {
    const output = new OutputCapture();
    const service = await serviceOfTest({ registry: FULL, environment: { LOG_LEVEL: 'warn' }, log: output.log });
    expect(await outcomes(service, NEXT)).toEqual(['unchanged', 'unchanged']);
    expect(await statusOf(service)).toBe(200);
    const lines = output.lines.filter((line) => line.includes('no longer in it'));
    expect(lines).toEqual([expect.stringMatching(/: client site, resource server api, agent [0-9a-f-]{36}"/)]);
  });

  it('with --prune deletes them and ends their tokens, suspends organizations, and leaves entries of the admin API', async () => {
    const service = await serviceOfTest({ registry: FULL });
    expect((await service.admin('POST', '/admin/clients', { ...SITE, client_id: 'by-operator' })).status).toBe(201);
    const before = audits(service);
    const pruned = (await prune(service, NEXT)).filter(({ outcome }) => outcome === 'deleted');
    expect(pruned.map(({ kind, id }) => `${kind} ${id}`)).toEqual([
      ...['client site', 'resource server api', 'agent two@acme.example'],
    ]);
    expect(audits(service) - before).toBe(3);
    expect([await statusOf(service), await statusOf(service, 'by-operator')]).toEqual([400, 200]);
    expect(await generations(service)).toEqual(['one 0']);
    expect((await prune(service, NEXT)).filter(({ outcome }) => outcome !== 'unchanged')).toEqual([]);
    const withoutAll = (await prune(service, { clients: [] })).map(({ outcome, id }) => `${outcome} ${id}`);
    expect(withoutAll).toEqual([`suspended ${ACME}`, 'deleted one@acme.example']);
    expect((await service.admin('GET', `/admin/organizations/${ACME}`)).body).toMatchObject({ suspended: true });
    expect(await statusOf(service, 'by-operator')).toBe(400);
    const repeated = (await prune(service, { clients: [] })).filter(({ outcome }) => outcome !== 'unchanged');
    expect(repeated).toEqual([]);
  });

  it('with --prune deletes nothing if the file is invalid', async () => {
    const service = await serviceOfTest({ registry: FULL });
    await expect(prune(service, { ...NEXT, clients: [{}] })).rejects.toThrow('clients[0].client_id');
    expect(await statusOf(service)).toBe(200);
  });
});

it('a start applies the file in one transaction, and a start with an unchanged file writes nothing', async () => {
  const service = await serviceOfTest({ registry: OLD });
  const state = async () => [
    await sql(service, 'SELECT * FROM registry_revision'),
    await sql(service, 'SELECT * FROM agent ORDER BY email'),
  ];
  const before = await state();
  expect(before[0]).toEqual([expect.objectContaining({ revision: 1 })]);
  const other = await serviceOfTest({ database: service.database, registry: OLD });
  expect(await state()).toEqual(before);
  expect(audits(other)).toBe(0);
});

it('a start without MIGRATE_ON_START does not apply the file to the database of a server, and logs a warning', async () => {
  const service = await serviceOfTest({ registry: OLD });
  const output = new OutputCapture();
  const environment = { MIGRATE_ON_START: 'false', LOG_LEVEL: 'warn' };
  const { database } = service;
  const registry = registryOf({}, 'Renamed');
  await serviceOfTest({ database, registry, environment, log: output.log });
  const [{ name }] = await sql(service, 'SELECT name FROM organization');
  // the embedded database has no roll-out
  expect(name).toBe(database.url.startsWith('sqlite:') ? 'Renamed' : 'Acme');
});

it('a start with an invalid file ends with all violations, and changes nothing', async () => {
  const service = await serviceOfTest({ registry: OLD });
  const registry = { organizations: [{ id: ACME, name: 'Renamed', surprise: 1 }], clients: [{}] };
  const start = serviceOfTest({ database: service.database, registry });
  await expect(start).rejects.toThrow(/organizations\[0\]\.surprise: unknown field\n.*clients\[0\]\.client_id: /s);
  expect((await sql(service, 'SELECT name FROM organization'))[0].name).toBe('Acme');
});
