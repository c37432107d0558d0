import { ServiceUnavailableException } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { BrowserLink, LinkAncestor } from '../../../src/identity/browser-link.entity.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { OrganizationUser } from '../../../src/organization-user/organization-user.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { RefreshFamilyAncestor } from '../../../src/refresh-token/refresh-family.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { familiesOf, refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { expectNoOrphans, identitiesOf } from '../../support/identities.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { linksOf, moveOf, remember } from '../../support/remember.js';
import { ACME } from '../../support/test-registry.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

/** Codes and revocations expire by themselves, and cookies with the id go on working for the browser's other customers. */
const TABLES_WITH_THE_ID = ['browser_customer', 'customer', 'one_time_code', 'revocation'];

const service = useService(() => {
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  return { registry };
});

/** The tables that have one of the ids in any column of any row. */
async function tablesWith(ids: string[]): Promise<string[]> {
  const { entityMetadatas, manager } = service.application.get(DataSource);
  const tables: string[] = [];
  for (const { tableName } of entityMetadatas) {
    const rows: object[] = await manager.query(`SELECT * FROM ${tableName}`);
    if (ids.some((id) => rows.some((row) => JSON.stringify(row).includes(id)))) tables.push(tableName);
  }
  return tables.sort();
}

describe('protocol §5.8: after the erasure of a customer', () => {
  it('no table has its links, its refresh families, their tokens or its external_id', async () => {
    const agent = bearer(await issueAgentToken(service));
    const body = agentTokenBody({ external_id: 'user-who-is-erased' });
    const { entity_id, access_token } = (await service.post('/v2/customer/token', body, agent)).body;
    await remember(service, await moveOf(service, access_token));
    const { refresh_token } = await stayOf(service, access_token);
    const links = await linksOf(service, entity_id);
    const families = await familiesOf(service, entity_id);
    expect([links.length, families.length]).toEqual([1, 1]);
    const redemption = JSON.parse(links[0]?.lineage as string).ancestors.at(-1) as string;
    const ids = [entity_id, families[0]?.id as string, redemption];
    const tables = await tablesWith(ids);
    for (const table of ['browser_customer', 'link_ancestor', 'organization_user', 'refresh_family'])
      expect(tables).toContain(table);
    const { tableName } = service.application.get(DataSource).getMetadata(RefreshFamilyAncestor);
    expect(tables).toContain(tableName);

    const erased = await service.erase(entity_id);
    expect(erased.status).toBe(200);
    expect((await tablesWith(ids)).filter((table) => !TABLES_WITH_THE_ID.includes(table))).toEqual([]);
    const kept = { entityId: entity_id, organizationId: ACME };
    const nulls = { groupId: null, creator: null, lastTokenDay: null, createdAt: null };
    const numbers = { generation: 1, linkGeneration: 1, version: expect.any(Number), erasedAt: expect.any(Date) };
    expect(await identitiesOf(service).findOneByOrFail({ entityId: entity_id })).toEqual({
      ...kept,
      ...nulls,
      ...numbers,
    });
    const { manager } = service.application.get(DataSource);
    const ended = { organizationId: null, groupId: null, root: null, lineage: null };
    expect(await manager.findBy(BrowserLink, { entityId: entity_id })).toEqual(
      links.map((link) => ({ ...link, ...ended })),
    );
    await expectNoOrphans(service);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect(await infoStatus(service, access_token)).toBe(401);
    const again = (await service.post('/v2/customer/token', body, agent)).body;
    expect(again.created).toBe(true);
    expect(again.entity_id).not.toBe(entity_id);
  });

  it('its tokens have ended even if the deletion of its data fails, and a second DELETE deletes the data', async () => {
    const agent = bearer(await issueAgentToken(service));
    const body = agentTokenBody({ external_id: 'user-of-a-failed-erasure' });
    const { entity_id, access_token } = (await service.post('/v2/customer/token', body, agent)).body;
    const { refresh_token } = await stayOf(service, access_token);
    const participants = service.application.get(CustomerDataParticipants);
    const deletion = vi.spyOn(participants, 'deleteOwnRows').mockRejectedValueOnce(new ServiceUnavailableException());
    expect((await service.erase(entity_id)).status).toBe(503);
    deletion.mockRestore();

    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    const again = (await service.post('/v2/customer/token', body, agent)).body;
    expect(again.created).toBe(true);
    expect(again.entity_id).not.toBe(entity_id);
    expect(await familiesOf(service, entity_id)).toHaveLength(1);
    expect((await service.erase(entity_id)).status).toBe(404);
    expect(await familiesOf(service, entity_id)).toEqual([]);
  });

  it('the purge leaves no row of a user with 1,200 linked customers, and no statement deletes more than 1,000 of them', async () => {
    const agent = bearer(await issueAgentToken(service));
    const body = agentTokenBody({ external_id: 'user-with-many-customers' });
    const { entity_id } = (await service.post('/v2/customer/token', body, agent)).body;
    const users = service.rowsOf(OrganizationUser);
    const user = await users.findOneByOrFail({ entityId: entity_id });
    const linked = Array.from({ length: 1_200 }, (_, index) => ({
      ...user,
      userHash: null,
      entityId: `linked-${index}`,
    }));
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
    const { manager } = service.application.get(DataSource);
    const copies = Array.from({ length: 1_200 }, (_, index) => ({ ...link, browserId: `browser-${index}` }));
    const ancestors = copies.map(({ entityId, browserId }) => ({ entityId, browserId, ancestorId: `of-${browserId}` }));
    for (let first = 0; first < copies.length; first += 100) {
      await manager.insert(BrowserLink, copies.slice(first, first + 100));
      await manager.insert(LinkAncestor, ancestors.slice(first, first + 100));
    }
    const transaction = vi.spyOn(service.application.get(Database), 'transaction');
    const logged = vi.spyOn(service.application.get(DataSource).logger, 'logQuery');
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
