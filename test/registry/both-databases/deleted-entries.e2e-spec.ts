import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { DeletedEntries } from '../../../src/registry/deleted-entries.js';
import { Registry } from '../../../src/registry/registry.js';
import { Session } from '../../../src/session/session.entity.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { refreshCustomer, stay, WITH_REFRESH } from '../../support/customer-refresh.js';
import { expectError } from '../../support/expect-error.js';
import { metricOf } from '../../support/management-api.js';
import { purge } from '../../support/operator-commands.js';
import { moveOf } from '../../support/remember.js';
import { readFeed } from '../../support/revocation-feed.js';
import { ACME, ACME_ORIGIN } from '../../support/test-registry.js';
import type { TestService } from '../../support/test-service.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const service = useService();
const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);

describe('the id of a deleted client', () => {
  const entryOf = (client_id: string) => ({
    ...{ client_id, name: 'Deleted', client_type: 'web', organization_id: ACME, redirect_uris: [`${ACME_ORIGIN}/`] },
    ...{ grant_types: WITH_REFRESH, grants: { identity_token: { remember: ['refresh_token'] } } },
  });
  const create = async (id: string) => (await admin('POST', 'clients', entryOf(id))).status;
  const sessions = (clientId: string) => service.rowsOf(Session).countBy({ clientId });

  it('is free after a day and a purge that has deleted its codes and refresh tokens, and a new client has none', async () => {
    const id = randomUUID();
    expect(await create(id)).toBe(201);
    const { access_token } = (await service.visit(undefined, { client_id: id })).body;
    const ofClient = { client_id: id };
    const before = (await stay(service, await moveOf(service, access_token, ofClient), ofClient)).body;
    expect(await sessions(id)).toBe(1);
    expect((await admin('DELETE', `clients/${id}`)).status).toBe(200);
    const hint = /^client_id: \S+ was deleted, and its id is free when the purge has deleted its codes/;
    expectError(await admin('POST', 'clients', entryOf(id)), { status: 409, error: 'conflict', hint });
    service.clock.advance({ seconds: DAY_SECONDS - 60 });
    await purge(service);
    expect(await create(id), 'less than a day').toBe(409);
    service.clock.advance({ seconds: 61 });
    expect(await create(id), 'before the purge').toBe(409);
    expect(await sessions(id)).toBeGreaterThan(0);
    expect((await purge(service))?.registry).toBe(1);
    expect(await service.rowsOf(Session).countBy({ clientId: id, kind: 'refresh' })).toBe(0);
    expect(await create(id)).toBe(201);
    const refused = await refreshCustomer(service, before.refresh_token, ofClient);
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    const token = (await service.visit(undefined, ofClient)).body.access_token;
    expect((await service.send('GET', '/v2/customer/info', bearer(token))).status, 'a new token').toBe(200);
  });
});

it('a deleted client is not in the number of clients of any process, also not of one that starts later', async () => {
  const [client_id, base] = [randomUUID(), { name: 'Counted', client_type: 'web', organization_id: ACME }];
  const countOf = (at: Pick<TestService, 'managementUrl'>) => metricOf(at, 'cas_registry_clients');
  const before = await countOf(service);
  expect((await admin('POST', 'clients', { ...base, client_id })).status).toBe(201);
  expect(await countOf(service)).toBe(before + 1);
  expect((await admin('DELETE', `clients/${client_id}`)).status).toBe(200);
  const later = await serviceOfTest({ database: service.database });
  expect([await countOf(service), await countOf(later)]).toEqual([before, before]);
});

it('a resource server that was created again during the purge stays', async () => {
  const server = { id: randomUUID(), audiences: ['customer-api'], secret: 's'.repeat(32) };
  expect((await admin('POST', 'resource-servers', server)).status).toBe(201);
  expect((await admin('DELETE', `resource-servers/${server.id}`)).status).toBe(200);
  service.clock.advance({ seconds: DAY_SECONDS + 61 });
  const deleted = service.application.get(DeletedEntries, { strict: false });
  const find = deleted.clients.bind(deleted);
  const steps = deleted.deleteInSteps(await find(new Date(service.clock.now())), new Date(service.clock.now()));
  const database = service.application.get(Database);
  const transaction = database.transaction.bind(database);
  vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
    vi.restoreAllMocks();
    expect((await admin('POST', 'resource-servers', server)).status).toBe(201);
    return transaction(work);
  });
  for await (const _ of steps);
  expect((await admin('GET', `resource-servers/${server.id}`)).status).toBe(200);
});

it('the id of a deleted resource server is free at once, in another process too', async () => {
  const other = await serviceOfTest({ database: service.database });
  const server = { id: randomUUID(), audiences: ['customer-api'], secret: 's'.repeat(32) };
  for (const secret of ['t'.repeat(32), 'u'.repeat(32)]) {
    expect((await admin('POST', 'resource-servers', { ...server, secret })).status).toBe(201);
    const feed = async () => {
      await other.application.get(Registry, { strict: false }).renew();
      return (await readFeed(other, '', basic(server.id, secret))).status;
    };
    expect(await feed()).toBe(200);
    expect((await admin('DELETE', `resource-servers/${server.id}`)).status).toBe(200);
    expect(await feed()).toBe(401);
  }
});
