import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ClientApplication } from '../../../src/registry/client-application.entity.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { clientOf } from '../../support/statements.js';
import { ACME, ACME_SITE, AT_RIVAL, RIVAL } from '../../support/test-registry.js';
import { useService } from '../../support/use-service.js';

const LISTS = ['organizations', 'clients', 'agents', 'resource-servers'];
const TENANT = randomUUID();

const service = useService();
const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);
const get = async (path: string) => (await admin('GET', path)).body;
const create = async (list: string, entry: object) => {
  const response = await admin('POST', list, entry);
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 201 });
};
const client = (client_id: string, name: string) => ({ client_id, name, client_type: 'web', organization_id: TENANT });
const idsOf = (entries: { client_id: string }[]) => entries.map(({ client_id }) => client_id);

/** The ids of all pages of clients. `between` runs after each page. */
async function allPages(query: string, between: () => Promise<unknown> = async () => {}): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page = await get(`clients?${query}&cursor=${cursor}`);
    pages.push(idsOf(page.clients));
    cursor = page.next_cursor;
    await between();
  }
  return pages;
}

beforeAll(async () => {
  await create('organizations', { id: TENANT, name: 'Tenant of the lists' });
  for (let at = 0; at < 7; at++) await create('clients', client(`list-${at}`, 'Listed'));
});

describe('a list of the admin API', () => {
  it('has one field for its entries, and next_cursor only if further entries may follow', async () => {
    const first = await get(`clients?organization_id=${TENANT}&limit=4`);
    expect(Object.keys(first)).toEqual(['clients', 'next_cursor']);
    const last = await get(`clients?organization_id=${TENANT}&limit=4&cursor=${first.next_cursor}`);
    expect(Object.keys(last)).toEqual(['clients']);
    expect(idsOf([...first.clients, ...last.clients])).toEqual([0, 1, 2, 3, 4, 5, 6].map((at) => `list-${at}`));
    expect(await get(`clients?organization_id=${TENANT}&limit=7`)).not.toHaveProperty('next_cursor');
  });

  it('has at most 200 entries if limit is omitted', async () => {
    const rows = service.rowsOf(ClientApplication);
    const site = await rows.findOneByOrFail({ clientId: ACME_SITE });
    const many = Array.from({ length: 201 }, (_each, at) => ({ ...site, grants: {}, clientId: `many-${at}` }));
    await rows.insert(many);
    expect((await get('clients')).clients).toHaveLength(200);
    expect((await allPages('')).flat().length).toBeGreaterThan(208);
    await rows.delete(many.map(({ clientId }) => clientId));
  });

  it('shows each entry exactly once while other entries are created and deleted between its pages', async () => {
    let step = 0;
    const between = async () => {
      await create('clients', client(`a-before-${++step}`, 'Inserted'));
      await create('clients', client(`list-0-between-${step}`, 'Inserted'));
      if (step > 1) await admin('DELETE', `clients/a-before-${step - 1}`);
    };
    const ids = (await allPages(`organization_id=${TENANT}&limit=2`, between)).flat();
    expect(ids.filter((id) => /^list-\d$/.test(id))).toEqual([0, 1, 2, 3, 4, 5, 6].map((at) => `list-${at}`));
    expect(ids).toEqual([...new Set(ids)].sort());
    const { clients } = await get(`clients?organization_id=${TENANT}`);
    const inserted = clients.filter(({ name }: { name: string }) => name === 'Inserted');
    for (const id of idsOf(inserted)) await admin('DELETE', `clients/${id}`);
  });

  it('has next_cursor if an entry of its page is deleted while the page is read', async () => {
    await create('clients', client('list-0-deleted', 'Deleted'));
    const database = clientOf(service);
    const query = database.query.bind(database);
    vi.spyOn(database, 'query').mockImplementationOnce(async (...statement) => {
      const result = await query(...statement);
      await admin('DELETE', 'clients/list-0-deleted');
      return result;
    });
    expect(await get(`clients?organization_id=${TENANT}&limit=2`)).toHaveProperty('next_cursor');
    expect(idsOf((await get(`clients?organization_id=${TENANT}`)).clients)).not.toContain('list-0-deleted');
  });

  it('continues after an entry that was deleted since its page was read', async () => {
    await create('clients', client('list-3-deleted', 'Deleted'));
    const first = await get(`clients?organization_id=${TENANT}&limit=5`);
    expect(idsOf(first.clients).at(-1)).toBe('list-3-deleted');
    await admin('DELETE', 'clients/list-3-deleted');
    const rest = await get(`clients?organization_id=${TENANT}&cursor=${first.next_cursor}`);
    expect(idsOf(rest.clients)).toEqual(['list-4', 'list-5', 'list-6']);
  });
});

describe('the filter of a list', () => {
  it('organization_id shows the entries of that organization only', async () => {
    const { clients } = await get(`clients?organization_id=${ACME}`);
    expect(new Set(clients.map((each: { organization_id: string }) => each.organization_id))).toEqual(new Set([ACME]));
    const { agents } = await get(`agents?organization_id=${ACME}`);
    expect(agents.length).toBeGreaterThan(0);
    expect(new Set(agents.map((each: { organization_id: string }) => each.organization_id))).toEqual(new Set([ACME]));
    expect(await get(`agents?organization_id=${randomUUID()}`)).toEqual({ agents: [] });
  });

  it('can be read without a filter', async () => {
    for (const list of LISTS) expect(await get(list)).toHaveProperty(list.replace('-', '_'));
  });
});

describe('the query of a list', () => {
  it.each(LISTS)('rejects each unknown parameter of %s by its name', async (list) => {
    for (const name of ['surprise', '__proto__']) {
      expectInvalidRequest(await admin('GET', `${list}?${name}=1`), `${name}: unknown parameter`);
      expectInvalidRequest(await admin('GET', `${list}?limit=1&${name}`), `${name}: unknown parameter`);
    }
    const strange = encodeURIComponent('<a>\n'.repeat(50));
    expectInvalidRequest(await admin('GET', `${list}?${strange}=1`), 'query: unknown parameter');
  });

  it('rejects a filter by a field that the entries do not have', async () => {
    expectInvalidRequest(
      await admin('GET', `organizations?organization_id=${ACME}`),
      'organization_id: unknown parameter',
    );
    expectInvalidRequest(await admin('GET', 'clients?name=x'), 'name: unknown parameter');
  });

  it.each(LISTS)('rejects a repeated parameter of %s', async (list) => {
    for (const query of ['limit=1&limit=1', 'limit=1&l%69mit=2'])
      expectInvalidRequest(await admin('GET', `${list}?${query}`), 'query: a parameter is given more than once');
  });

  it('rejects a cursor that this list has not returned', async () => {
    const { next_cursor } = await get('clients?limit=1');
    const hint = 'cursor: not a next_cursor of this list';
    for (const cursor of ['x', '%00', `${next_cursor}A`, 'A'.repeat(8_000)])
      expectInvalidRequest(await admin('GET', `clients?cursor=${cursor}`), hint);
    expectInvalidRequest(await admin('GET', `agents?cursor=${next_cursor}`), hint);
  });

  it.each([
    ['limit=201', /^limit: must be 1 to 200$/],
    ['limit=1e2', /^limit: must be 1 to 200$/],
    ['organization_id=x', /^organization_id: must be a UUID/],
  ])('rejects %s with the name of the parameter and its rule', async (query, hint) => {
    expectInvalidRequest(await admin('GET', `clients?${query}`), hint);
  });

  it('treats an empty parameter as omitted', async () => {
    const all = await get(`clients?organization_id=${ACME}`);
    expect(await get(`clients?organization_id=${ACME}&cursor=&limit=`)).toEqual(all);
  });
});

describe('GET /admin/customers without external_id', () => {
  const pageOf = async (query: string) => (await service.admin('GET', `/admin/customers?${query}`)).body;

  it('lists the customers of one organization, page by page in the order of their ids', async () => {
    const visits = [await service.visit(), await service.visit(), await service.visit(undefined, AT_RIVAL)];
    const [first, second, ofRival] = visits.map(({ body }) => body.entity_id);
    const page = await pageOf(`organization_id=${ACME}&limit=1`);
    expect(Object.keys(page)).toEqual(['customers', 'next_cursor']);
    expect(page.customers).toEqual([
      { entity_id: first, organization_id: ACME, browser: true, created_at: expect.any(String) },
    ]);
    const next = await pageOf(`organization_id=${ACME}&cursor=${page.next_cursor}`);
    expect(Object.keys(next)).toEqual(['customers']);
    expect(next.customers.map((customer: { entity_id: string }) => customer.entity_id)).toEqual([second]);
    expect((await pageOf(`organization_id=${RIVAL}`)).customers).toMatchObject([{ entity_id: ofRival }]);
    await service.erase(first);
    expect((await pageOf(`organization_id=${ACME}`)).customers).toMatchObject([{ entity_id: second }]);
  });

  it('rejects an unknown parameter, and the cursor of another organization', async () => {
    await service.visit();
    const { next_cursor } = await pageOf(`organization_id=${ACME}&limit=1`);
    const of = (query: string) => service.admin('GET', `/admin/customers?${query}`);
    expectInvalidRequest(await of(`organization_id=${RIVAL}&cursor=${next_cursor}`), /^cursor: not a next_cursor/);
    expectInvalidRequest(await of(`organization_id=${ACME}&externalid=1`), /^externalid: unknown parameter/);
    expectInvalidRequest(await of('limit=1'), /^organization_id: required/);
  });
});
