import { Injectable, Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { BrowserLink } from '../../../src/identity/browser-link.entity.js';
import { partsOf } from '../../../src/identity/identity-cookies.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { CustomerDataParticipants, type ExportPage, IdentityModule } from '../../../src/public/grant.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { expectError, expectInvalidRequest } from '../../support/expect-error.js';
import { secretOf } from '../../support/identities.js';
import { manage } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember } from '../../support/remember.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import { newCustomer, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../../support/use-service.js';

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The number of rows of the grant's table about one customer. */
const tickets = new Map<string, number>();

async function ticketsOf(owner: string, after = '0'): Promise<ExportPage> {
  const count = tickets.get(owner) ?? 1;
  const first = Number(after);
  const numbers = Array.from({ length: Math.min(count - first, 1_000) }, (_, index) => first + index);
  const page = { tables: { ticket: numbers.map((number) => ({ owner, number })) } };
  return count > first + 1_000 ? { ...page, next: String(first + 1_000) } : page;
}

/** A grant's table with rows about customers, and an older participant without an export. */
@Injectable()
class TestParticipant {
  constructor(participants: CustomerDataParticipants) {
    const older = { onErase: async () => {}, mustRetain: async () => [], linkedIds: async () => [] };
    participants.add(older);
    participants.add({ ...older, exportRows: ticketsOf });
  }
}

@Module({ imports: [IdentityModule], providers: [TestParticipant] })
class TestParticipantModule {}

/** A participant of the next release, before the others. */
@Injectable()
class NewParticipant {
  readonly onErase = async () => {};
  readonly mustRetain = async () => [];
  readonly linkedIds = async () => [];

  constructor(participants: CustomerDataParticipants) {
    participants.add(this);
  }
}

@Module({ imports: [IdentityModule], providers: [NewParticipant] })
class NewParticipantModule {}

const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
const service = useService({ registry, modules: [TestParticipantModule] });

const exportOf = (id: string, token = ADMIN_TOKEN, query = '') =>
  manage(service, 'GET', `/admin/identities/${id}/export${query}`, bearer(token));

/** The pages of an export, or those from one on. */
async function pagesOf(id: string, after?: string): Promise<{ tables: Record<string, object[]>; next?: string }[]> {
  const { status, body } = await exportOf(id, ADMIN_TOKEN, after === undefined ? '' : `?after=${after}`);
  expect(status).toBe(200);
  return body.next === undefined ? [body] : [body, ...(await pagesOf(id, body.next))];
}

const linksIn = () => service.rowsOf(BrowserLink);
const linksOf = (entityId: string) => linksIn().find({ where: { entityId }, order: { browserId: 'ASC' } });

/** Adds links of other browsers to the customer of a browser. */
async function addLinks(entityId: string, count: number): Promise<void> {
  const [link] = await linksOf(entityId);
  const at = Date.now();
  const links = Array.from({ length: count }, () => ({ ...link, browserId: uuidv7(at), beganIn: uuidv7(at) }));
  for (let from = 0; from < count; from += 500) await linksIn().insert(links.slice(from, from + 500));
}

describe('protocol §9.2: the export of a customer', () => {
  it('has the rows of every table about the customer, and nothing of another customer', async () => {
    const agent = await issueAgentToken(service);
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const cookie = cookieHeader(known);
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: RIVAL });
    const ofRival = (await service.post(TOKEN, body, { cookie })).body.entity_id;
    const linked = await remember(service, await moveOf(service, access_token));
    const code = await transferToken(service, access_token);
    const other = await newCustomer(service);
    const response = await exportOf(entity_id);
    expect(response.status).toBe(200);
    const { tables, ...head } = response.body;
    expect(head).toEqual({ entity_id, exported_at: expect.stringMatching(ISO_TIME) });
    expect(tables.customer).toEqual([
      expect.objectContaining({ entity_id, organization_id: ACME, created_at: expect.stringMatching(ISO_TIME) }),
    ]);
    const link = { link_id: expect.any(String), entity_id, organization_id: ACME };
    expect(tables.browser_customer).toEqual([expect.objectContaining(link), expect.objectContaining(link)]);
    expect(response.text).not.toContain(partsOf(secretOf(known)).browserId);
    expect(tables.link_ancestor.length).toBeGreaterThan(0);
    expect(tables.one_time_code).toHaveLength(2);
    for (const row of tables.one_time_code)
      expect(row).toMatchObject({
        subject: entity_id,
        client_id: ACME_SITE,
        expires_at: expect.stringMatching(ISO_TIME),
      });
    expect(tables.ticket).toEqual([{ owner: entity_id, number: 0 }]);
    for (const foreign of [ofRival, other.entity_id, code, agent, secretOf(known), secretOf(linked)])
      expect(response.text).not.toContain(foreign);
    expect(response.text).not.toMatch(/secret_hash|code_challenge|"hash"/);
  });

  it('has the refresh families of the customer with their ancestors, without a hash', async () => {
    const { entity_id, refresh_token } = await stayOf(service);
    const successor = (await refreshCustomer(service, refresh_token)).body.refresh_token;
    const response = await exportOf(entity_id);
    const { refresh_family: families, refresh_family_ancestor: ancestors } = response.body.tables;
    expect(families).toEqual([
      expect.objectContaining({ customer_id: entity_id, begun_at: expect.stringMatching(ISO_TIME) }),
    ]);
    for (const row of ancestors) expect(row.family_id).toBe(families[0].id);
    expect(ancestors.length).toBeGreaterThan(0);
    for (const secret of [refresh_token, successor]) expect(response.text).not.toContain(secret.split('.').at(-1));
    expect(response.text).not.toMatch(/[_"]hash"/);
  });

  it('has the raised generation of the customer as the revocation feed has it', async () => {
    const { entity_id } = await newCustomer(service);
    const path = `/admin/identities/${entity_id}/end_sessions`;
    expect((await service.admin('POST', path, {})).status).toBe(200);
    const { tables } = (await exportOf(entity_id)).body;
    const time = expect.stringMatching(ISO_TIME);
    const revocation = { kind: 'generation', value: entity_id, generation: 1, audience: 'customer-api' };
    expect(tables.revocation).toEqual([{ ...revocation, issued_before: time, expires_at: time }]);
  });

  it('has the user of the organization to whom the customer belongs', async () => {
    const agent = await issueAgentToken(service);
    const { body } = await service.post(TOKEN, agentTokenBody({ external_id: 'user-of-exports' }), bearer(agent));
    const { tables } = (await exportOf(body.entity_id)).body;
    expect(tables.organization_user).toEqual([
      expect.objectContaining({ customer_id: body.entity_id, linked_at: expect.stringMatching(ISO_TIME) }),
    ]);
  });

  it('has at most 1,000 rows of each table in a page, and its pages have every row once', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id } = known.body;
    await addLinks(entity_id, 2_400);
    tickets.set(entity_id, 1_500);
    const pages = await pagesOf(entity_id);
    expect(pages.map(({ tables }) => tables.browser_customer?.length)).toEqual([1_000, 999, 402]);
    expect(pages.map(({ tables }) => tables.ticket?.length)).toEqual([1_000, 500, undefined]);
    expect(pages.map(({ tables }) => tables.customer?.length)).toEqual([1, undefined, undefined]);
    const links = pages.flatMap(({ tables }) => tables.browser_customer as { link_id: string }[]);
    expect(new Set(links.map(({ link_id }) => link_id)).size).toBe(2_401);
    const cursors = pages.map(({ next = '' }) => Buffer.from(next, 'base64url').toString()).join();
    for (const { browserId } of await linksOf(entity_id)) expect(cursors).not.toContain(browserId);
  });

  it('misses no row if rows of an earlier page are deleted meanwhile', async () => {
    const { entity_id } = (await service.post(TOKEN, cookieBody())).body;
    await addLinks(entity_id, 1_500);
    const first = (await exportOf(entity_id)).body;
    const [deleted, ...others] = await linksOf(entity_id);
    await linksIn().delete({ browserId: (deleted as BrowserLink).browserId, entityId: entity_id });
    const pages = [first, ...(await pagesOf(entity_id, first.next))];
    const found = new Set(pages.flatMap(({ tables }) => tables.browser_customer).map(({ link_id }) => link_id));
    expect(found.size).toBe(others.length + 1);
  });

  it('goes on with the next page in a release with one more participant', async () => {
    const { entity_id } = await newCustomer(service);
    tickets.set(entity_id, 1_500);
    const { next } = (await exportOf(entity_id)).body;
    const modules = [NewParticipantModule, TestParticipantModule];
    const upgraded = await serviceOfTest({ database: service.database, registry, modules });
    const { status, body } = await upgraded.admin('GET', `/admin/identities/${entity_id}/export?after=${next}`);
    expect(status).toBe(200);
    expect(body.tables.ticket).toHaveLength(500);
  });

  it.each([
    ['has another form', 'x'],
    ['names an unknown table', Buffer.from('{"own":"{\\"unknown\\":{\\"count\\":0}}"}').toString('base64url')],
    ['names an unknown participant', Buffer.from('{"others":"{\\"0\\":\\"1000\\"}"}').toString('base64url')],
    [
      'has a wrong number',
      Buffer.from('{"own":"{\\"link_ancestor\\":{\\"count\\":\\"1; \\"}}"}').toString('base64url'),
    ],
    ['is of another type', Buffer.from('{"own":[7],"others":{"0":1}}').toString('base64url')],
  ])('rejects a next that %s', async (_, after) => {
    const { entity_id } = await newCustomer(service);
    const path = `/admin/identities/${entity_id}/export`;
    const asOperator = (query: string) => service.admin('GET', `${path}?${query}`);
    expectInvalidRequest(await asOperator(`after=${after}`), /^after: not a next of this export$/);
    expectInvalidRequest(await asOperator('next=x'), /^next: unknown parameter$/);
  });

  it('is an audit event', async () => {
    const { entity_id } = await newCustomer(service);
    await exportOf(entity_id);
    const subject = { kind: 'customer', id: entity_id };
    expect(service.audit.at(-1)).toMatchObject({ event: 'identity.exported', actor: { kind: 'operator' }, subject });
  });

  it('is a 404 for an unknown or erased customer', async () => {
    const { entity_id } = await newCustomer(service);
    await service.admin('DELETE', `/admin/identities/${entity_id}`);
    for (const id of [entity_id, '01890000-0000-7000-8000-000000000000', 'x'])
      expectError(await exportOf(id), { status: 404, error: 'not_found', hint: undefined });
  });
});
