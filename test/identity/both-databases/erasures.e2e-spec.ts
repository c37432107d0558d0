import { Injectable, Module, ServiceUnavailableException } from '@nestjs/common';
import { DataSource, IsNull, Not } from 'typeorm';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { BrowserLink, LinkAncestor } from '../../../src/identity/browser-link.entity.js';
import { UnfinishedErasure } from '../../../src/identity/customer-identity.entity.js';
import { OrganizationUser } from '../../../src/organization-user/organization-user.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { CustomerDataParticipants, IdentityModule } from '../../../src/public/grant.js';
import { CustomerFamilies } from '../../../src/refresh-token/customer-families.js';
import { RefreshFamilyAncestor } from '../../../src/refresh-token/refresh-family.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { familiesOf, refreshCustomer, stayOf } from '../../support/customer-refresh.js';
import { failAtEachStatement, OUTAGE } from '../../support/dying-transactions.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { expectNoOrphans, identitiesOf } from '../../support/identities.js';
import { ERASE, manageCustomer, managerToken, managingRegistry } from '../../support/managed-customers.js';
import { purge } from '../../support/operator-commands.js';
import { linksOf, moveOf, remember, rememberedPair } from '../../support/remember.js';
import { ACME } from '../../support/test-registry.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

/** Codes and revocations expire by themselves, and cookies with the id go on working for the browser's other customers. */
const TABLES_WITH_THE_ID = ['browser_customer', 'customer', 'one_time_code', 'revocation'];

const MAX_ROWS = 1_000;
const GROUP = `/v2/customer/${ACME}/sales/token`;

type Deletion = (entityId: string) => Promise<void>;

/** Two extensions with data of customers, and the customers whose data each one was asked to delete. */
const working: Deletion = async () => undefined;
const deletions: { behaviors: [Deletion, Deletion]; asked: [string[], string[]] } = {
  behaviors: [working, working],
  asked: [[], []],
};

@Injectable()
class TwoParticipants {
  constructor(participants: CustomerDataParticipants) {
    for (const index of [0, 1] as const)
      participants.add({
        mustRetain: async () => [],
        linkedIds: async () => [],
        onErase: async (entityId) => {
          deletions.asked[index].push(entityId);
          await deletions.behaviors[index](entityId);
        },
      });
  }
}

@Module({ imports: [IdentityModule], providers: [TwoParticipants] })
class TwoParticipantsModule {}

const service = useService({ registry: managingRegistry(), modules: [TwoParticipantsModule] });

const dataSource = () => service.application.get(DataSource);
let agent: string;
beforeAll(async () => {
  agent = await managerToken(service);
});
afterEach(() => {
  deletions.behaviors = [working, working];
});

const erase = (named: object) => manageCustomer(service, ERASE, agent, named);
const tokenOf = async (named: object) => (await service.post(TOKEN, agentTokenBody(named), bearer(agent))).body;
const linkCount = async (entityId: string) => (await liveLinksOf(entityId)).length;
const liveLinksOf = (entityId: string) =>
  service.rowsOf(BrowserLink).findBy({ entityId, organizationId: Not(IsNull()) });
const unfinishedOf = (entityId: string) => service.rowsOf(UnfinishedErasure).countBy({ entityId });
const customerOf = (entityId: string) => identitiesOf(service).findOneByOrFail({ entityId });
const erasureEvents = (id: string) =>
  service.audit.filter(({ event, subject }) => event === 'identity.erased' && subject?.id === id);

/** Adds links of other browsers, until the customer has this number of links. */
async function addLinks(entityId: string, count: number, organizationId: string | null = ACME): Promise<void> {
  const [link] = await liveLinksOf(entityId);
  const at = Date.now();
  const copies = Array.from({ length: count - 1 }, () => ({
    ...{ ...link, organizationId, browserId: uuidv7(at), beganIn: uuidv7(at) },
  }));
  for (let from = 0; from < copies.length; from += 500)
    await service.rowsOf(BrowserLink).insert(copies.slice(from, from + 500));
}

/** The tables that have one of the ids in any column of any row. */
async function tablesWith(ids: string[]): Promise<string[]> {
  const { entityMetadatas, manager } = dataSource();
  const tables: string[] = [];
  for (const { tableName } of entityMetadatas) {
    const rows: object[] = await manager.query(`SELECT * FROM ${tableName}`);
    if (ids.some((id) => rows.some((row) => JSON.stringify(row).includes(id)))) tables.push(tableName);
  }
  return tables.sort();
}

describe('protocol §5.8: after the erasure of a customer', () => {
  it('no table has its links, its refresh families, their tokens or its external_id', async () => {
    const named = { external_id: 'user-who-is-erased' };
    const { entity_id, access_token } = await tokenOf(named);
    await remember(service, await moveOf(service, access_token));
    const { refresh_token } = await stayOf(service, access_token);
    const links = await linksOf(service, entity_id);
    const families = await familiesOf(service, entity_id);
    expect([links.length, families.length]).toEqual([1, 1]);
    const redemption = JSON.parse(links[0]?.lineage as string).ancestors.at(-1) as string;
    const ids = [entity_id, families[0]?.id as string, redemption];
    const tables = await tablesWith(ids);
    const { tableName } = dataSource().getMetadata(RefreshFamilyAncestor);
    for (const table of ['browser_customer', 'link_ancestor', 'organization_user', 'refresh_family', tableName])
      expect(tables).toContain(table);

    expect((await service.erase(entity_id)).status).toBe(200);
    expect((await tablesWith(ids)).filter((table) => !TABLES_WITH_THE_ID.includes(table))).toEqual([]);
    const nulls = { groupId: null, creator: null, lastTokenDay: null, createdAt: null };
    const numbers = { generation: 1, linkGeneration: 1, version: expect.any(Number), erasedAt: expect.any(Date) };
    expect(await customerOf(entity_id)).toEqual({
      ...{ entityId: entity_id, organizationId: ACME },
      ...nulls,
      ...numbers,
    });
    const ended = {
      organizationId: null,
      groupId: null,
      root: null,
      lineage: null,
      agentId: null,
      agentGeneration: null,
    };
    const rows = await service.rowsOf(BrowserLink).findBy({ entityId: entity_id });
    expect(rows).toEqual(links.map((link) => ({ ...link, ...ended })));
    await expectNoOrphans(service);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect(await infoStatus(service, access_token)).toBe(401);
    const path = `/admin/identities?organization_id=${ACME}&external_id=${named.external_id}`;
    expect((await service.admin('GET', path)).status).toBe(404);
    const again = await tokenOf(named);
    expect(again.created).toBe(true);
    expect(again.entity_id).not.toBe(entity_id);
  });

  it('its tokens have ended even if the deletion of its data fails, and a second DELETE deletes the data', async () => {
    const named = { external_id: 'user-of-a-failed-erasure' };
    const { entity_id, access_token } = await tokenOf(named);
    const { refresh_token } = await stayOf(service, access_token);
    const families = service.application.get(CustomerFamilies);
    vi.spyOn(families, 'deleteRows').mockRejectedValueOnce(new ServiceUnavailableException());
    expect((await service.erase(entity_id)).status).toBe(503);

    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    const again = await tokenOf(named);
    expect(again.created).toBe(true);
    expect(again.entity_id).not.toBe(entity_id);
    expect(await familiesOf(service, entity_id)).toHaveLength(1);
    expect((await service.erase(entity_id)).status).toBe(404);
    expect(await familiesOf(service, entity_id)).toEqual([]);
  });

  it('the purge leaves no row of a user with 1,200 linked customers, and no statement deletes more than 1,000 of them', async () => {
    const { entity_id } = await tokenOf({ external_id: 'user-with-many-customers' });
    const users = service.rowsOf(OrganizationUser);
    const user = { ...(await users.findOneByOrFail({ entityId: entity_id })), userHash: null };
    const linked = Array.from({ length: 1_200 }, (_, index) => ({ ...user, entityId: `linked-${index}` }));
    for (let first = 0; first < linked.length; first += 100) await users.insert(linked.slice(first, first + 100));
    const execute = vi.spyOn(service.application.get(Database), 'execute');
    expect((await service.erase(entity_id)).status).toBe(200);
    expect(await users.countBy({ customerId: entity_id })).toBe(1_200);
    await purge(service);
    const deleted = (await Promise.all(execute.mock.results.map(({ value }) => value))) as number[];
    execute.mockRestore();
    expect(deleted.filter((count) => count > 100)).toEqual([1_000, 200]);
    expect(await users.countBy({ customerId: entity_id })).toBe(0);
  });

  it('the purge leaves no link of a customer with more than 1,000 rows, and no transaction ends more than 500 links', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    await remember(service, await moveOf(service, access_token));
    const [link] = (await linksOf(service, entity_id)) as [BrowserLink];
    const { manager } = dataSource();
    const copies = Array.from({ length: 1_200 }, (_, index) => ({ ...link, browserId: `browser-${index}` }));
    const ancestors = copies.map(({ entityId, browserId }) => ({ entityId, browserId, ancestorId: `of-${browserId}` }));
    for (let first = 0; first < copies.length; first += 100) {
      await manager.insert(BrowserLink, copies.slice(first, first + 100));
      await manager.insert(LinkAncestor, ancestors.slice(first, first + 100));
    }
    const transaction = vi.spyOn(service.application.get(Database), 'transaction');
    const logged = vi.spyOn(dataSource().logger, 'logQuery');
    expect((await service.erase(entity_id)).status).toBe(200);
    expect(await linksOf(service, entity_id)).toHaveLength(1_201);
    await purge(service);
    // each statement names its links, so that its cost does not grow with the links that earlier steps have ended
    const texts = logged.mock.calls.map(([sql]) => sql.trim());
    logged.mockRestore();
    const ofLinks = texts.filter((text) => /^(UPDATE browser_customer|DELETE FROM link_ancestor)/.test(text));
    expect(ofLinks.length).toBeGreaterThanOrEqual(3);
    for (const text of ofLinks) expect(text).toMatch(/WHERE \(?\(browser_id = \? AND entity_id = \?\)/);
    expect(transaction.mock.calls.length).toBeGreaterThanOrEqual(3);
    transaction.mockRestore();
    expect(await linksOf(service, entity_id)).toEqual([]);
    expect(await manager.countBy(LinkAncestor, { entityId: entity_id })).toBe(0);
  });
});

describe('protocol §4.16: the erasure of a customer by an agent', () => {
  it('ends everything, deletes the external id, and can be repeated by customer_id only', async () => {
    const external_id = 'user-who-is-erased-by-an-agent';
    const { entity_id, access_token } = await tokenOf({ external_id });
    await remember(service, await moveOf(service, access_token));
    await stayOf(service, access_token);
    expect(await erase({ external_id })).toMatchObject({ status: 200, body: {} });
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await familiesOf(service, entity_id)).toEqual([]);
    expect(await linkCount(entity_id)).toBe(0);
    expect(await unfinishedOf(entity_id)).toBe(0);

    expect(await erase({ customer_id: entity_id })).toMatchObject({ status: 200, body: {} });
    expectInvalidRequest(await erase({ external_id }), 'external_id: unknown');
    expect(erasureEvents(entity_id)).toHaveLength(1);
    const next = await tokenOf({ external_id });
    expect(next.created).toBe(true);
    expect(next.entity_id).not.toBe(entity_id);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect(await infoStatus(service, next.access_token)).toBe(200);
  });

  it.each([
    ['at most 1,000 rows at once', MAX_ROWS, 0, false],
    ['no row of more than 1,000, which the purge deletes', MAX_ROWS + 1, 0, true],
    ['no row of more than 1,000 in all tables together', MAX_ROWS, 1, true],
  ])('deletes %s', async (_, links, families, areLeft) => {
    const visitor = await service.visit();
    const { entity_id, access_token } = visitor.body;
    const rowCounts = async () => [await linkCount(entity_id), (await familiesOf(service, entity_id)).length];
    if (families > 0) await stayOf(service, access_token);
    await addLinks(entity_id, links);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect(deletions.asked.map((asked) => asked.filter((id) => id === entity_id).length)).toEqual([1, 1]);
    expect(await rowCounts()).toEqual(areLeft ? [links, families] : [0, 0]);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await service.idOf(cookieHeader(visitor))).not.toBe(entity_id);
    await purge(service);
    expect(await rowCounts()).toEqual([0, 0]);
    expect(await unfinishedOf(entity_id)).toBe(0);
  });

  it('deletes the refresh family at once if more than 1,000 links lead nowhere, which no erasure deletes', async () => {
    const { entity_id, access_token } = (await service.visit()).body;
    await stayOf(service, access_token);
    await addLinks(entity_id, MAX_ROWS + 2, null);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect([await linkCount(entity_id), await familiesOf(service, entity_id)]).toEqual([0, []]);
    expect(await unfinishedOf(entity_id)).toBe(0);
  });

  const fails = () => Promise.reject(new Error('the table of the extension is locked'));

  it.each<[string, Deletion]>([
    ['fails', fails],
    ['hangs', () => new Promise(() => undefined)],
  ])('responds with 503 while one %s, and everything else has ended and can be continued', async (name, fail) => {
    const external_id = `user-whose-extension-${name}`;
    const { entity_id, access_token } = await tokenOf({ external_id });
    deletions.behaviors = [fail, working];
    const failed = await erase({ external_id });
    expectError(failed, { status: 503, error: 'temporarily_unavailable', hint: undefined });
    expect(failed.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidRequest(await erase({ external_id }), 'external_id: unknown');
    if (name === 'fails') expect(deletions.asked[1], 'the other extension').toContain(entity_id);
    deletions.behaviors = [fails, working];
    expect((await erase({ customer_id: entity_id })).status).toBe(503);

    deletions.behaviors = [working, working];
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    for (const asked of deletions.asked) expect(asked.at(-1)).toBe(entity_id);
    expect(await unfinishedOf(entity_id)).toBe(0);
    expect(erasureEvents(entity_id)).toHaveLength(1);
  });

  it('is finished by the purge if it is not repeated', async () => {
    const { entity_id } = await newCustomer(service);
    deletions.behaviors = [fails, working];
    expect((await erase({ customer_id: entity_id })).status).toBe(503);
    await purge(service);
    expect(await unfinishedOf(entity_id)).toBe(1);
    deletions.behaviors = [working, working];
    await purge(service);
    expect(deletions.asked[0].at(-1)).toBe(entity_id);
    expect(await unfinishedOf(entity_id)).toBe(0);
  });
});

describe('protocol §4.16: an erasure at the same time as other requests', () => {
  it('is one erasure if it is sent 8 times at once', async () => {
    const { entity_id, access_token } = await tokenOf({ external_id: 'user-erased-eight-times' });
    const statuses = await Promise.all(Array.from({ length: 8 }, () => erase({ customer_id: entity_id })));
    expect(statuses.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(erasureEvents(entity_id)).toHaveLength(1);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await customerOf(entity_id)).toMatchObject({ generation: 1 });
  });

  it('ends everything and deletes the external id, or does nothing, if its transaction fails at any statement', async () => {
    const users = Array.from({ length: 30 }, (_, index) => ({ external_id: `user-of-an-outage-${index}` }));
    const tokens = await Promise.all(users.map(tokenOf)); // before, because each token of a new user is a transaction
    const errors = await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      const { external_id } = users.pop() as (typeof users)[0];
      const { entity_id, access_token } = tokens.pop();
      const response = await erase({ external_id });
      expect(response.status).toBe(hasFailed() ? 503 : 200);
      const isErased = (await infoStatus(service, access_token)) === 401;
      expect(isErased).toBe(!hasFailed());
      expect((await tokenOf({ external_id })).entity_id === entity_id).toBe(!isErased);
    });
    expect(errors).toBeGreaterThanOrEqual(8);
  });
});

describe('protocol §3.12: the generation of a customer in a group', () => {
  /** A customer whose first browser is idle, and the token that another browser got for it today. */
  async function customerOfOtherBrowser() {
    const phone = new TestBrowser(service);
    await phone.visit();
    const { entity_id, access_token } = (await phone.visit({}, GROUP)).body;
    let cookie = await rememberedPair(service, access_token);
    let token = '';
    for (let year = 0; year < 3; year++) {
      service.passDays(300);
      const response = await service.visit(cookie, {}, GROUP);
      expect(response.body.entity_id).toBe(entity_id);
      cookie = cookieHeader(response);
      token = response.body.access_token;
    }
    expect(await infoStatus(service, token)).toBe(200);
    return { entityId: entity_id as string, token, phone };
  }

  it('outlives the purge of the idle browser after the erasure, so that the tokens of the last day stay ended', async () => {
    const { entityId, token, phone } = await customerOfOtherBrowser();
    expect((await service.erase(entityId)).status).toBe(200);
    for (let round = 0; round < 3; round++) await purge(service);
    expect(await infoStatus(service, token)).toBe(401);
    const row = await customerOf(entityId);
    expect(row).toMatchObject({ groupId: null, creator: null, lastTokenDay: null, createdAt: null });
    expect(row.erasedAt).not.toBeNull();
    expect(row.generation).toBeGreaterThan(0);
    expect((await phone.visit({}, GROUP)).body.entity_id).not.toBe(entityId);
  });

  it('outlives the purge of the idle browser after the end of all sessions', async () => {
    const { entityId, token } = await customerOfOtherBrowser();
    expect((await endSessions(service, token)).status).toBe(200);
    for (let round = 0; round < 3; round++) await purge(service);
    expect(await infoStatus(service, token)).toBe(401);
    expect(await identitiesOf(service).countBy({ entityId })).toBe(1);
  });
});
