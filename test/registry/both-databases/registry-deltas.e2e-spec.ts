import { setImmediate } from 'node:timers/promises';
import { Logger, Module, type OnApplicationBootstrap, ServiceUnavailableException } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { Database } from '../../../src/platform/database/database.js';
import { Registry } from '../../../src/registry/registry.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { connectTo } from '../../support/database-connection.js';
import { metricOf } from '../../support/management-api.js';
import { purge } from '../../support/operator-commands.js';
import { applyRegistry } from '../../support/registry-files.js';
import { clientOf, sqlOf } from '../../support/statements.js';
import { ACME, testRegistry } from '../../support/test-registry.js';
import { collectTimers } from '../../support/timers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const RENEWAL_INTERVAL_MS = 2_000;

/** The process whose admin API changes the registry, and another process on the same database. */
const writer = useService();
const reader = useService(() => ({ database: writer.database }));

const admin = async (method: string, path: string, body?: object) =>
  (await writer.admin(method, `/admin/${path}`, body)).status;
const client = (client_id: string, more: object = {}) => ({
  client_id,
  name: client_id,
  client_type: 'web',
  organization_id: ACME,
  redirect_uris: ['https://deltas.example/'],
  ...more,
});
const create = (id: string, more: object = {}) => admin('POST', 'clients', client(id, more));
const registry = () => reader.application.get(Registry, { strict: false });
const sql = (text: string) => writer.application.get(DataSource).query(text);
const revision = async () => (await sql('SELECT revision FROM registry_revision'))[0].revision;
/** What operations.md says about a change by SQL. */
const readEverything = () => sql('UPDATE registry_revision SET complete_from = revision + 1, revision = revision + 1');
const readsOf = async () => ({
  changes: await metricOf(reader, 'cas_registry_reads_total{kind="changes"}'),
  full: await metricOf(reader, 'cas_registry_reads_total{kind="full"}'),
});
/** The reads that another process needs until it has the changes of `work`. */
const readsAfter = async (work: () => Promise<unknown>) => {
  await registry().renew();
  const before = await readsOf();
  await work();
  await registry().renew();
  const after = await readsOf();
  // the periodic renewal of the process may read one of two changes alone
  return { changes: after.changes > before.changes, full: after.full - before.full };
};
const ONLY_CHANGES = { changes: true, full: 0 };

describe('the changes of the registry', () => {
  it('are in use after the start of a process that read the registry before another one applied the same file', async () => {
    const { clients, ...others } = testRegistry();
    const file = { ...others, clients: [...clients, client('of-two-starts')] };
    /** Its hook runs after the registry was read, and before the file of the process is applied. */
    @Module({})
    class OtherStart implements OnApplicationBootstrap {
      async onApplicationBootstrap(): Promise<void> {
        await applyRegistry(writer, file);
      }
    }
    const later = await serviceOfTest({ database: writer.database, registry: file, modules: [OtherStart] });
    const body = cookieBody({ client_id: 'of-two-starts' });
    expect((await later.post(TOKEN, body)).status).toBe(200);
  });

  it('reach another process, which reads only the changed entries', async () => {
    expect(await readsAfter(() => create('created'))).toEqual(ONLY_CHANGES);
    expect(registry().client('created')?.name).toBe('created');
    expect(await readsAfter(() => admin('PATCH', 'clients/created', { name: 'Changed' }))).toEqual(ONLY_CHANGES);
    expect(registry().client('created')?.name).toBe('Changed');
    expect(await readsAfter(() => admin('DELETE', 'clients/created'))).toEqual(ONLY_CHANGES);
    expect(registry().client('created')).toBeUndefined();
  });

  it('reach another process together: an organization with its clients, and many entries', async () => {
    const ids = Array.from({ length: 60 }, (_, index) => `many-${index}`);
    const organization = { id: '00000000-0000-4000-8000-00000000000d', name: 'New' };
    const work = async () => {
      expect(await admin('POST', 'organizations', organization)).toBe(201);
      const created = ids.map((id) => create(id, { organization_id: organization.id }));
      expect(new Set(await Promise.all(created))).toEqual(new Set([201]));
      expect(await admin('DELETE', `clients/${ids[0]}`)).toBe(200);
    };
    expect(await readsAfter(work)).toEqual(ONLY_CHANGES);
    expect(registry().organization(organization.id)?.name).toBe('New');
    expect(ids.filter((id) => registry().client(id) === undefined)).toEqual([ids[0]]);
  });

  it('change the origins of one client, and not those of other clients', async () => {
    const origin = 'https://deltas.example';
    const ask = async (client_id: string) =>
      (await reader.post(TOKEN, cookieBody({ client_id, redirect_uri: `${origin}/` }), { origin })).status;
    await readsAfter(() => Promise.all([create('origin-1'), create('origin-2')]));
    expect([await ask('origin-1'), await ask('origin-2')]).toEqual([200, 200]);
    await readsAfter(() => admin('PATCH', 'clients/origin-1', { redirect_uris: ['https://other.example/'] }));
    expect([await ask('origin-1'), await ask('origin-2')]).toEqual([400, 200]);
    expect([registry().knowsOrigin(origin), registry().knowsOrigin('https://other.example')]).toEqual([true, true]);
    await readsAfter(() => admin('DELETE', 'clients/origin-1'));
    expect(registry().knowsOrigin('https://other.example')).toBe(false);
  });

  it('include the license of an organization, and reach another process within 5 s without a request', async () => {
    const id = '00000000-0000-4000-8000-00000000000e';
    const organization = { id, name: 'Licensed', license: { chat_between_groups: false } };
    await readsAfter(() => admin('POST', 'organizations', organization));
    const chatsBetweenGroups = () => registry().organization(id)?.chatBetweenGroups;
    expect(chatsBetweenGroups()).toBe(false);
    await admin('PATCH', `organizations/${id}`, { license: { chat_between_groups: true } });
    await expect.poll(chatsBetweenGroups).toBe(true);
    // The interval does not depend on the load of the machine. 1 s remains for reading the changes.
    expect(Reflect.get(Reflect.get(registry(), 'timer'), '_repeat')).toBeLessThanOrEqual(4_000);
  });

  it('of a registry file reach another process, which reads only the changed entries', async () => {
    const file = testRegistry();
    const clients = [client('of-file'), ...file.clients.slice(1)];
    expect(await readsAfter(() => applyRegistry(writer, { ...file, clients }))).toEqual(ONLY_CHANGES);
    expect(registry().client('of-file')?.fromFile).toBe(true);
  });

  it('reach another process in several portions, if there are many', async () => {
    const file = testRegistry();
    const ids = Array.from({ length: 1_100 }, (_, index) => `portion-${index}`);
    const clients = [...file.clients, ...ids.map((id) => client(id))];
    expect(await readsAfter(() => applyRegistry(writer, { ...file, clients }))).toEqual(ONLY_CHANGES);
    expect(ids.filter((id) => registry().client(id) === undefined)).toEqual([]);
  });

  it('do not include a request of the admin API that fails', async () => {
    const before = await revision();
    expect(await admin('PATCH', 'clients/unknown', { name: 'Unknown' })).toBe(404);
    expect(await create('origin-2')).toBe(409);
    expect(await create('invalid', { organization_id: '00000000-0000-4000-8000-000000000000' })).toBe(400);
    expect(await revision()).toBe(before);
  });
});

it('an extension cannot change the lists and settings of the registry in memory', async () => {
  await readsAfter(() => create('listed', { scopes: ['b', 'a'] }));
  const listed = registry().client('listed');
  const acme = registry().organization(ACME);
  expect(() => listed?.scopes.sort()).toThrow(TypeError);
  expect(() => Object.assign(acme?.grants ?? {}, { changed: {} })).toThrow(TypeError);
  expect(registry().client('listed')?.scopes).toEqual(['b', 'a']);
});

describe('a process reads the whole registry', () => {
  const fullRead = { changes: false, full: 1 };

  it('if an operator has changed it by SQL, and raised both numbers', async () => {
    await readsAfter(() => create('deleted'));
    const work = async () => {
      await sql("DELETE FROM client_application WHERE client_id = 'deleted'");
      await sql("UPDATE client_application SET name = 'Changed by SQL' WHERE client_id = 'origin-2'");
      await readEverything();
    };
    expect(await readsAfter(work)).toEqual(fullRead);
    expect(registry().client('deleted')).toBeUndefined();
    expect(registry().client('origin-2')?.name).toBe('Changed by SQL');
    expect(await readsAfter(() => create('after-sql'))).toEqual(ONLY_CHANGES);
  });

  it('if the purge has deleted the row of an entry whose deletion it does not know', async () => {
    const service = await serviceOfTest({ database: writer.database });
    const away = service.application.get(Registry, { strict: false });
    await create('purged');
    await away.renew();
    expect(away.client('purged')?.name).toBe('purged');
    const renew = away.renew.bind(away);
    vi.spyOn(away, 'renew').mockResolvedValue(); // as if the process had been suspended
    await admin('DELETE', 'clients/purged');
    writer.clock.advance({ seconds: DAY_SECONDS + 1 });
    await purge(writer);
    expect(
      Number((await sql("SELECT COUNT(*) AS count FROM client_application WHERE client_id = 'purged'"))[0].count),
    ).toBe(0);
    expect(away.client('purged')?.name).toBe('purged');
    await renew();
    expect(away.client('purged')).toBeUndefined();
    expect(await metricOf(service, 'cas_registry_reads_total{kind="full"}')).toBe(2);
  });
});

it('a process that reads the registry repeats a page that the server rolled back twice', async () => {
  await create('repeated-page');
  const client = clientOf(reader);
  const query = client.query.bind(client);
  let failures = 0;
  const spy = vi.spyOn(client, 'query').mockImplementation(async (text, parameters) => {
    if (text.includes('client_application') && failures++ < 2) throw Object.assign(new Error(), { errno: 1213 });
    return query(text, parameters);
  });
  await sql("UPDATE client_application SET name = 'Repeated page' WHERE client_id = 'repeated-page'");
  await readEverything();
  await registry().renew();
  spy.mockRestore();
  expect(registry().client('repeated-page')?.name).toBe('Repeated page');
  expect(failures).toBeGreaterThan(2);
});

it.runIf(onMariadb)(
  'a process whose page gets no response stops reading the registry while the table is locked',
  async () => {
    const locking = await connectTo(reader.database);
    const lock = locking.createQueryRunner();
    await readEverything();
    await lock.query('LOCK TABLES client_application WRITE');
    try {
      await expect(registry().renew()).rejects.toThrow(ServiceUnavailableException);
    } finally {
      await lock.release();
      await locking.destroy();
    }
  },
);

it('a renewal of the registry that ends after the process has stopped writes no warning', async () => {
  const { application } = await serviceOfTest({ database: writer.database });
  const registry = application.get(Registry, { strict: false });
  let fail = (_: Error) => {};
  const promise = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const database = application.get(Database);
  const select = vi.spyOn(database, 'select').mockReturnValue(promise);
  const isReading = () =>
    select.mock.calls.some(([statement]) => sqlOf(database, statement).includes('registry_revision'));
  await expect.poll(isReading).toBe(true);
  const warn = vi.spyOn(Logger.prototype, 'warn');
  registry.onApplicationShutdown();
  fail(new Error('Pool is closed.'));
  await registry.renew().catch(() => undefined);
  await setImmediate();
  const warnings = warn.mock.calls.filter(([text]) => String(text).includes('the registry could not be read'));
  vi.restoreAllMocks();
  expect(warnings).toEqual([]);
});

it('an outage is logged when the registry cannot be read, and when it can be read again', async () => {
  const renewals = collectTimers(RENEWAL_INTERVAL_MS, 'setInterval');
  const renewPeriodically = () => {
    for (const renewal of renewals) renewal();
  };
  const { application } = await serviceOfTest({ database: writer.database });
  const registry = application.get(Registry, { strict: false });
  const texts = () => [...warn.mock.calls, ...log.mock.calls].map(([text]) => String(text));
  const warn = vi.spyOn(Logger.prototype, 'warn');
  const log = vi.spyOn(Logger.prototype, 'log');
  const renew = vi.spyOn(registry, 'renew').mockRejectedValue(new Error('connect ECONNREFUSED'));
  for (let round = 0; round < 3; round++) {
    renewPeriodically();
    await expect.poll(() => renew.mock.calls.length).toBeGreaterThan(round);
  }
  renew.mockRestore();
  renewPeriodically();
  await expect.poll(texts).toContain('the registry can be read again');
  expect(texts().filter((text) => text.startsWith('the registry could not be read'))).toHaveLength(1);
  vi.restoreAllMocks();
});
