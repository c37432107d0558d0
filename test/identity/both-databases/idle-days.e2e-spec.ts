import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { BrowserLink, LinkAncestor } from '../../../src/identity/browser-link.entity.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { EndedLinks } from '../../../src/identity/ended-links.js';
import { Database } from '../../../src/platform/database/database.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { linksOf, moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { sqlOf } from '../../support/statements.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import { newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const IDLE_DAYS = 30;
const GROUP = `/v2/customer/${ACME}/sales/token`;
const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };
const TABLES = ['customer', 'browser', 'browser_customer', 'link_ancestor'];

function registryWithIdleDays(): ReturnType<typeof rememberingRegistry> {
  const registry = rememberingRegistry();
  registry.organizations = registry.organizations.map((entry) =>
    'id' in entry && entry.id === ACME ? { ...entry, idle_days: IDLE_DAYS } : entry,
  );
  return registry;
}

const service = useService({ registry: registryWithIdleDays() });

const rowsIn = async (table: string): Promise<number> =>
  Number(
    (await service.application.get(DataSource).query(`SELECT COUNT(*) AS rows_found FROM ${table}`))[0].rows_found,
  );

describe('protocol §5.9: idle_days of an organization', () => {
  it('ends the link of a browser to a customer that it has not used for longer', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    for (const days of [IDLE_DAYS, IDLE_DAYS, 1]) {
      service.passDays(days);
      expect((await browser.visit()).body.entity_id).toBe(entity_id);
    }
    service.passDays(IDLE_DAYS + 1);
    const next = (await browser.visit()).body.entity_id;
    expect(next).not.toBe(entity_id);
    service.passDays(IDLE_DAYS);
    expect((await browser.visit()).body.entity_id).toBe(next);
  });

  it('counts for each organization and group alone', async () => {
    const browser = new TestBrowser(service);
    const [plain, sales] = [(await browser.visit()).body.entity_id, (await browser.visit({}, GROUP)).body.entity_id];
    const rival = (await browser.visit(AT_RIVAL)).body.entity_id;
    for (let week = 0; week < 6; week++) {
      service.passDays(7);
      expect((await browser.visit({}, GROUP)).body.entity_id).toBe(sales);
    }
    expect((await browser.visit(AT_RIVAL)).body.entity_id).toBe(rival);
    expect((await browser.visit()).body.entity_id).not.toBe(plain);
  });

  it('ends a link from a transfer too, and a later call with the same cookies gets one new customer', async () => {
    const moved = await newCustomer(service);
    const pair = await rememberedPair(service, moved.access_token);
    service.passDays(IDLE_DAYS);
    expect(await service.idOf(pair)).toBe(moved.entity_id);
    service.passDays(IDLE_DAYS + 1);
    const ids = await Promise.all(Array.from({ length: 10 }, () => service.idOf(pair)));
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).not.toBe(moved.entity_id);
  });

  it('leaves one new customer and one audit event after parallel calls of one browser', async () => {
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token);
    service.passDays(IDLE_DAYS + 1);
    const created = () => service.audit.filter(({ event }) => event === 'identity.created').length;
    const state = async () => [await rowsIn('customer'), await rowsIn('browser_customer'), created()];
    const before = await state();
    const database = service.application.get(Database);
    const transaction = database.transaction.bind(database);
    const waiting: (() => void)[] = [];
    // Every call has read the idle link before the first one replaces it.
    vi.spyOn(database, 'transaction').mockImplementation(async (work) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 5) for (const go of waiting) go();
      });
      return transaction(work) as never;
    });
    const ids = await Promise.all(Array.from({ length: 5 }, () => service.idOf(pair)));
    vi.restoreAllMocks();
    expect([waiting.length, new Set(ids).size]).toEqual([5, 1]);
    expect(await state()).toEqual(before.map((count) => count + 1));
  });

  it('leaves an idle customer out of a conflict, of a new browser and of the check whether to clear cookies', async () => {
    const browser = new TestBrowser(service);
    await browser.visit();
    await browser.visit({}, GROUP);
    service.passDays(IDLE_DAYS + 1);
    const moved = await newCustomer(service);
    const response = await remember(service, await moveOf(service, moved.access_token), { cookie: browser.cookie });
    expect(response.status).toBe(200);
    const body = { client_id: ACME_SITE, organization_id: ACME };
    const forgotten = await service.post(
      '/v2/customer/forget',
      { ...body, group_id: 'sales' },
      { cookie: browser.cookie ?? '' },
    );
    expect(forgotten.cookies).toHaveLength(2);
  });

  it.each([0, 732, -1, 1.5, '30', null])('must be a whole number from 1 to 731: %j', async (idle_days) => {
    const entry = { id: randomUUID(), name: 'Idle', idle_days };
    const response = await service.admin('POST', '/admin/organizations', entry);
    if (idle_days === null) expect(response.status).toBeLessThan(300);
    else expectInvalidRequest(response, /idle_days/);
  });

  it('is returned by the admin API, and can be removed', async () => {
    const entry = { id: randomUUID(), name: 'Idle', idle_days: 7 };
    const created = (await service.admin('POST', '/admin/organizations', entry)).body;
    expect(created.idle_days).toBe(7);
    const path = `/admin/organizations/${created.id}`;
    const changed = await service.admin('PATCH', path, { idle_days: null });
    expect(changed.body).not.toHaveProperty('idle_days');
  });

  it.each([60, null])(
    'counts as it is at the visit: after it became %j, a link that was idle is not',
    async (later) => {
      const organization_id = randomUUID();
      const path = `/admin/organizations/${organization_id}`;
      const change = (idle_days: number | null) => service.admin('PATCH', path, { idle_days });
      const entry = { id: organization_id, name: 'Idle', idle_days: 7, public_clients: [PUBLIC_SITE] };
      await service.admin('POST', '/admin/organizations', entry);
      const browser = new TestBrowser(service);
      const body = { client_id: PUBLIC_SITE, organization_id };
      const { entity_id } = (await browser.visit(body)).body;
      service.passDays(30);
      expect((await change(later)).status).toBe(200);
      expect(await service.idOf(browser.cookie as string, body)).toBe(entity_id);
      service.passDays(8);
      expect((await change(7)).status).toBe(200);
      expect(await service.idOf(browser.cookie as string, body)).not.toBe(entity_id);
    },
  );
});

describe('the purge of browser links', () => {
  it('deletes the links that a revocation has ended before it deletes the revocation', async () => {
    const moved = await newCustomer(service);
    const pair = await rememberedPair(service, moved.access_token);
    await service.send('DELETE', TOKEN, bearer(moved.access_token));
    service.passDays(20);
    expect((await purge(service))?.browser_customer).toBe(1);
    expect(await service.rowsOf(Revocation).count()).toBe(0);
    expect(await service.idOf(pair)).not.toBe(moved.entity_id);
  });

  it('leaves a revocation that expires during the purge to the next purge, so that its links stay ended', async () => {
    const moved = await newCustomer(service);
    const pair = await rememberedPair(service, moved.access_token);
    await service.send('DELETE', TOKEN, bearer(moved.access_token));
    const endedLinks = service.application.get(EndedLinks);
    const deleteInSteps = endedLinks.deleteInSteps.bind(endedLinks);
    vi.spyOn(endedLinks, 'deleteInSteps').mockImplementation(async function* (size, now) {
      yield* deleteInSteps(size, now);
      service.passDays(20);
    });
    expect(await purge(service)).toMatchObject({ browser_customer: 0, revocation: 0 });
    vi.restoreAllMocks();
    expect(await service.idOf(pair)).not.toBe(moved.entity_id);
    service.passDays(20);
    expect((await purge(service))?.revocation).toBe(1);
  });

  /** Runs `act` once, after the purge has read the links that expired revocations have ended. */
  function afterReadingEndedLinks(act: () => Promise<unknown>): void {
    const database = service.application.get(Database);
    const select = database.select.bind(database);
    let hasRun = false;
    vi.spyOn(database, 'select').mockImplementation(async (statement, parameters) => {
      const rows = await select(statement, parameters);
      if (!hasRun && /FROM revocation\s+JOIN link_ancestor/.test(sqlOf(database, statement))) {
        hasRun = true;
        await act();
      }
      return rows as never;
    });
  }

  it('leaves no way back by a browser that remembers another customer during the purge of the revocation', async () => {
    const moved = await newCustomer(service);
    const pair = await rememberedPair(service, moved.access_token);
    await service.send('DELETE', TOKEN, bearer(moved.access_token));
    service.passDays(20);
    const inGroup = (await service.post(GROUP, cookieBody())).body;
    let later = '';
    afterReadingEndedLinks(async () => {
      later = await rememberedPair(service, inGroup.access_token, pair);
    });
    await purge(service);
    expect(await service.rowsOf(Revocation).count()).toBe(0);
    expect(await service.idOf(later, {}, GROUP)).toBe(inGroup.entity_id);
    expect(await service.idOf(later)).not.toBe(moved.entity_id);
  });

  it('ends at most 50 links in a step, and also a link that another node has added after the purge has read', async () => {
    const moved = await newCustomer(service);
    await rememberedPair(service, moved.access_token);
    const [link] = (await linksOf(service, moved.entity_id)) as [BrowserLink];
    await service.send('DELETE', TOKEN, bearer(moved.access_token));
    const { manager } = service.application.get(DataSource);
    const addCopies = async (browserIds: string[]) => {
      const { entityId } = link;
      const [ancestorId] = JSON.parse(link.lineage as string).ancestors;
      await manager.insert(
        BrowserLink,
        browserIds.map((browserId) => ({ ...link, browserId })),
      );
      await manager.insert(
        LinkAncestor,
        browserIds.map((browserId) => ({ entityId, browserId, ancestorId })),
      );
    };
    await addCopies(Array.from({ length: 119 }, (_, index) => `copy-${index}`));
    service.passDays(20);
    afterReadingEndedLinks(() => addCopies(['added-later']));
    const { version } = await identitiesOf(service).findOneByOrFail({ entityId: moved.entity_id });
    const steps: number[] = [];
    for await (const ended of service.application.get(EndedLinks).deleteInSteps(1_000, new Date(service.clock.now())))
      steps.push(ended);
    expect(steps.reduce((sum, ended) => sum + ended, 0)).toBe(121);
    expect(Math.max(...steps)).toBeLessThanOrEqual(50);
    expect(await linksOf(service, moved.entity_id)).toEqual([]);
    expect(await manager.countBy(LinkAncestor, { entityId: moved.entity_id })).toBe(0);
    const after = await identitiesOf(service).findOneByOrFail({ entityId: moved.entity_id });
    expect(after.version, 'a parallel remember decides before or after the purge').toBeGreaterThan(version);
  });

  it('deletes every row of an idle browser that remembered a customer, and then the customer', async () => {
    const before = await Promise.all(TABLES.map(rowsIn));
    const phone = new TestBrowser(service);
    const { access_token } = (await phone.visit()).body;
    await rememberedPair(service, access_token, cookieHeader(await service.post(GROUP, cookieBody())));
    service.passDays(800);
    await purge(service);
    service.passDays(3);
    await purge(service);
    const after = await Promise.all(TABLES.map(rowsIn));
    for (const [index, count] of after.entries()) expect(count, TABLES[index]).toBeLessThanOrEqual(before[index] ?? 0);
  });

  it.each([
    ['first customer', TOKEN],
    ['customer in a group', GROUP],
  ])('keeps the %s of an idle browser if an agent transfers it to another one during the purge', async (_, path) => {
    const phone = new TestBrowser(service);
    await phone.visit();
    const { entity_id: entityId } = (await phone.visit({}, path)).body;
    service.passDays(800);
    const agent = await issueAgentToken(service);
    const move = await moveOf(service, agent, { bearer_type: 'agent', customer_id: entityId });
    await identitiesOf(service).update({ entityId }, { lastTokenDay: null });
    const participants = service.application.get(CustomerDataParticipants);
    let pair = '';
    vi.spyOn(participants, 'mustRetain').mockImplementationOnce(async () => {
      pair = cookieHeader(await remember(service, move));
      return [];
    });
    await purge(service);
    expect(await identitiesOf(service).findOneByOrFail({ entityId })).toMatchObject({ erasedAt: null });
    expect((await service.post(path, cookieBody(), { cookie: pair })).body.entity_id).toBe(entityId);
  });

  it('keeps a customer whose first browser is idle while another browser uses it', async () => {
    const phone = new TestBrowser(service);
    const { access_token, entity_id: id } = (await phone.visit()).body;
    let pair = await rememberedPair(service, access_token);
    for (let month = 0; month < 28; month++) {
      service.passDays(28);
      expect(await service.idOf(pair)).toBe(id);
      pair = cookieHeader(await service.post(TOKEN, cookieBody(), { cookie: pair }));
    }
    await purge(service);
    expect(await service.idOf(pair)).toBe(id);
  });
});
