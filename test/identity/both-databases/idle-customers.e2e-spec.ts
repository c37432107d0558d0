import { randomUUID } from 'node:crypto';
import { Logger, ServiceUnavailableException } from '@nestjs/common';
import { IsNull, Not } from 'typeorm';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Customers } from '../../../src/customer/customers.js';
import { Ended } from '../../../src/feed/ended.entity.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { Database } from '../../../src/platform/database/database.js';
import { type CustomerDataParticipant, defineExtension } from '../../../src/public/grant.js';
import { Browser } from '../../../src/session/browser.entity.js';
import { Session } from '../../../src/session/session.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { atNextTransaction } from '../../support/dying-transactions.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { browserIdOf, identitiesOf } from '../../support/identities.js';
import { forgetPurgeOfDay, issueAgentToken, purge } from '../../support/operator-commands.js';
import { moveOf, remember, rememberedPair } from '../../support/remember.js';
import { type Sender, statementsOf } from '../../support/statements.js';
import { ACME, ACME_SITE, AT_RIVAL, PUBLIC_SITE, SHARED } from '../../support/test-registry.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const IDLE_DAYS = 30;
const GROUP = `/v2/customer/${ACME}/sales/token`;

function registry(): ReturnType<typeof refreshingRegistry> {
  const all = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  all.organizations = all.organizations.map((entry) =>
    'id' in entry && [ACME, SHARED].includes(entry.id as string) ? { ...entry, idle_days: IDLE_DAYS } : entry,
  );
  return all;
}

/** Retains no customer, unless a test replaces the method. */
class RetainingParticipant implements CustomerDataParticipant {
  async onErase(_entityId: string): Promise<void> {}

  async mustRetain(_entityIds: string[]): Promise<string[]> {
    return [];
  }
}

const service = useService({ registry: registry(), ...defineExtension({ participants: [RetainingParticipant] }) });
afterEach(() => forgetPurgeOfDay(service));

const purgeAgain = async () => {
  await forgetPurgeOfDay(service);
  return purge(service);
};
const isPurged = async (entityId: string) => !(await identitiesOf(service).existsBy({ entityId }));
/** The customers whose erasure began. */
const idsOfUnfinished = async () =>
  (await identitiesOf(service).findBy({ erasedAt: Not(IsNull()) })).map(({ entityId }) => entityId);
const byAgent = async (entity_id: string) =>
  service.post(TOKEN, agentTokenBody({ entity_id }), bearer(await issueAgentToken(service)));
const FORGOTTEN = { client_id: ACME_SITE, organization_id: ACME };

describe('protocol §5.9: idle_days of an organization', () => {
  it('ends the session of a browser with a customer that it has not used for longer', async () => {
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

  it('ends a session by transfer too: parallel calls of the browser get one new customer, with one audit event', async () => {
    const moved = await newCustomer(service);
    const pair = await rememberedPair(service, moved.access_token);
    service.passDays(IDLE_DAYS);
    expect(await service.idOf(pair)).toBe(moved.entity_id);
    service.passDays(IDLE_DAYS + 1);
    const created = () => service.audit.filter(({ event }) => event === 'identity.created').length;
    const state = async () => [await identitiesOf(service).count(), await service.rowsOf(Session).count(), created()];
    const before = await state();
    const database = service.application.get(Database);
    const transaction = database.transaction.bind(database);
    const waiting: (() => void)[] = [];
    // Every call has read the idle session before the first one replaces it.
    vi.spyOn(database, 'transaction').mockImplementation(async (work) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 5) for (const go of waiting) go();
      });
      return transaction(work) as never;
    });
    const ids = await Promise.all(Array.from({ length: 5 }, () => service.idOf(pair)));
    expect([waiting.length, new Set(ids).size]).toEqual([5, 1]);
    expect(ids[0]).not.toBe(moved.entity_id);
    expect(await state()).toEqual(before.map((count) => count + 1));
  });

  it('leaves an idle customer out of a conflict, of a new browser and of the check whether to clear cookies', async () => {
    const browser = new TestBrowser(service);
    await browser.visit();
    await browser.visit({}, GROUP);
    service.passDays(IDLE_DAYS + 1);
    const moved = await newCustomer(service);
    const { cookie = '' } = browser;
    const response = await remember(service, await moveOf(service, moved.access_token), { cookie });
    expect(response.status).toBe(200);
    const forgotten = await service.post('/v2/customer/forget', { ...FORGOTTEN, group_id: 'sales' }, { cookie });
    expect(forgotten.cookies).toHaveLength(2);
  });

  it.each([0, 732, -1, 1.5, '30', null])('must be a whole number from 1 to 731: %j', async (idle_days) => {
    const entry = { id: randomUUID(), name: 'Idle', idle_days };
    const response = await service.admin('POST', '/admin/organizations', entry);
    if (idle_days === null) expect(response.status).toBeLessThan(300);
    else expectInvalidRequest(response, /idle_days/);
  });

  describe('that is changed', () => {
    const organization_id = randomUUID();
    const body = { client_id: PUBLIC_SITE, organization_id };
    const change = async (idle_days: number | null) =>
      expect((await service.admin('PATCH', `/admin/organizations/${organization_id}`, { idle_days })).status).toBe(200);
    const entry = { id: organization_id, name: 'Idle', idle_days: 7, public_clients: [PUBLIC_SITE] };
    beforeAll(async () => {
      await service.admin('POST', '/admin/organizations', entry);
    });
    beforeEach(() => change(7));
    const newBrowser = async () => {
      const browser = new TestBrowser(service);
      const { entity_id } = (await browser.visit(body)).body;
      return { entity_id, visit: async () => (await browser.visit(body)).body.entity_id };
    };

    it.each([60, null])('to %j, which is longer, counts from the next visit', async (later) => {
      const [visiting, idle] = [await newBrowser(), await newBrowser()];
      await change(later);
      service.passDays(1);
      expect(await visiting.visit()).toBe(visiting.entity_id);
      service.passDays(30);
      expect(await visiting.visit()).toBe(visiting.entity_id);
      expect(await idle.visit()).not.toBe(idle.entity_id);
    });

    it('to less counts after the next purge', async () => {
      await change(60);
      const [one, other] = [await newBrowser(), await newBrowser()];
      await change(7);
      service.passDays(8);
      expect(await one.visit()).toBe(one.entity_id);
      await purgeAgain();
      expect(await other.visit()).not.toBe(other.entity_id);
      expect(await one.visit(), 'visited since').toBe(one.entity_id);
    });
  });
});

describe('protocol §5.9: the purge of idle browsers', () => {
  const browserIn = (cookie = '') => browserIdOf(/__svc_cst=([0-9a-f]+)/.exec(cookie)?.[1] as string);
  const rowsOfBrowser = async (browserId: string) => [
    await service.rowsOf(Browser).countBy({ browserId }),
    await service.rowsOf(Session).countBy({ browserId }),
  ];

  it.each([
    ['purged', (_id: string) => undefined],
    ['retained', (id: string) => identitiesOf(service).update({ entityId: id }, { creator: 'agent' })],
  ])('deletes a browser that used no customer for idle_days and a day, if its customer is %s', async (_, act) => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    await act(entity_id);
    const browserId = browserIn(browser.cookie);
    service.passDays(IDLE_DAYS + 1);
    await purgeAgain();
    expect(await rowsOfBrowser(browserId)).toEqual([1, 1]);
    service.passDays(1);
    await purgeAgain();
    expect(await rowsOfBrowser(browserId)).toEqual([0, 0]);
    expect((await browser.visit()).body.entity_id).not.toBe(entity_id);
    expect(browserIn(browser.cookie)).not.toBe(browserId);
  });

  it('leaves the customer of a browser that was forgotten, and so is gone at once, until it is idle itself', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    service.passDays(20);
    const { access_token } = (await browser.visit()).body;
    const { cookie = '' } = browser;
    await service.post('/v2/customer/forget', FORGOTTEN, { cookie });
    expect(await rowsOfBrowser(browserIn(cookie))).toEqual([0, 0]);
    expect(await infoStatus(service, access_token)).toBe(200);
    service.passDays(IDLE_DAYS);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(false);
    service.passDays(1.1);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(true);
  });

  it('deletes a browser whose session is idle although a copy of the session is used', async () => {
    const inShared = { client_id: PUBLIC_SITE, organization_id: SHARED };
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit(inShared)).body;
    const copy = await rememberedPair(service, (await newCustomer(service)).access_token, browser.cookie);
    service.passDays(IDLE_DAYS - 1);
    expect(await service.idOf(copy, inShared)).toBe(entity_id);
    service.passDays(3);
    await purgeAgain();
    expect(await rowsOfBrowser(browserIn(browser.cookie))).toEqual([0, 0]);
    expect(await service.idOf(copy, inShared)).toBe(entity_id);
  });

  it('leaves a device ended that has ended with the token that made it, after nothing says so any more', async () => {
    const moved = await newCustomer(service);
    const pair = await rememberedPair(service, moved.access_token);
    await service.send('DELETE', TOKEN, bearer(moved.access_token));
    service.passDays(20);
    await purge(service);
    expect(await service.rowsOf(Ended).count()).toBe(0);
    expect(await service.idOf(pair)).not.toBe(moved.entity_id);
  });
});

describe('protocol §5.9: the purge of idle customers', () => {
  it('deletes a customer that its browser has not used for idle_days, and leaves the browser its other customers', async () => {
    const browser = new TestBrowser(service);
    const rival = (await browser.visit(AT_RIVAL)).body.entity_id;
    const first = (await browser.visit()).body.entity_id;
    const pairOfFirst = browser.cookie as string;
    const sales = (await browser.visit({}, GROUP)).body.entity_id;
    service.passDays(IDLE_DAYS);
    await purge(service);
    expect([await isPurged(first), await isPurged(sales)]).toEqual([false, false]);
    expect((await browser.visit({}, GROUP)).body.entity_id).toBe(sales);
    service.passDays(2);
    await purge(service);
    expect([await isPurged(first), await isPurged(sales), await isPurged(rival)]).toEqual([true, false, false]);
    expect(await service.idOf(pairOfFirst, AT_RIVAL)).toBe(rival);
    expect((await browser.visit({}, GROUP)).body.entity_id).toBe(sales);
    const next = (await browser.visit()).body.entity_id;
    expect(next).not.toBe(first);
    expect((await browser.visit()).body.entity_id).toBe(next);
  });

  it.each<[string, (entityId: string, token: string) => Promise<() => Promise<string>>]>([
    ['an agent', async (entityId) => async () => (await byAgent(entityId)).body.entity_id],
    [
      'a browser',
      async (_, token) => {
        const cookie = await rememberedPair(service, token);
        return () => service.idOf(cookie);
      },
    ],
    [
      'a refresh token',
      async (_, token) => {
        let { refresh_token } = await stayOf(service, token);
        return async () => {
          const { body } = await refreshCustomer(service, refresh_token);
          refresh_token = body.refresh_token;
          return body.entity_id;
        };
      },
    ],
  ])('retains a customer that gets tokens by %s, until idle_days after the last one', async (_, begin) => {
    const { entity_id, access_token } = await newCustomer(service);
    const use = await begin(entity_id, access_token);
    for (const days of [20, 20, 20]) {
      service.passDays(days);
      expect(await use()).toBe(entity_id);
      await purgeAgain();
      expect(await isPurged(entity_id)).toBe(false);
    }
    service.passDays(IDLE_DAYS);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(false);
    service.passDays(2);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(true);
  });

  it('counts the last token of a transfer and of a browser that has forgotten the customer since', async () => {
    const [moved, linked] = [await newCustomer(service), await newCustomer(service)];
    const code = await transferToken(service, moved.access_token);
    const pair = await rememberedPair(service, linked.access_token);
    service.passDays(20);
    expect((await service.visit(pair)).body.entity_id).toBe(linked.entity_id);
    expect((await service.post('/v2/customer/forget', FORGOTTEN, { cookie: pair })).status).toBe(200);
    service.passDays(-19.98);
    expect((await redeem(service, code)).status).toBe(200);
    service.passDays(19.98 + 12);
    await purge(service);
    expect([await isPurged(moved.entity_id), await isPurged(linked.entity_id)]).toEqual([true, false]);
    service.passDays(20);
    await purge(service);
    expect(await isPurged(linked.entity_id)).toBe(true);
  });

  it('goes on with the other customers if a participant fails for one, logs it, and tries again in each purge', async () => {
    const participant = service.application.get(RetainingParticipant, { strict: false });
    const failing = (await newCustomer(service)).entity_id;
    const others = [(await newCustomer(service)).entity_id, (await newCustomer(service)).entity_id];
    service.passDays(IDLE_DAYS + 2);
    const onErase = vi.spyOn(participant, 'onErase').mockImplementation(async (id) => {
      if (id === failing) throw new Error('no disk');
    });
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const erased = () => onErase.mock.calls.map(([id]) => id);
    await purge(service);
    for (const id of others) expect(erased()).toContain(id);
    expect(await idsOfUnfinished()).toEqual([failing]);
    expect(warn.mock.calls.join()).toMatch(new RegExp(`${failing}.*no disk`));
    for (const id of others) expect(await isPurged(id)).toBe(true);
    // the next purge begins with the customer that failed
    const next = (await newCustomer(service)).entity_id;
    service.passDays(IDLE_DAYS + 2);
    onErase.mockClear();
    await purgeAgain();
    expect(erased()[0]).toBe(failing);
    expect(erased()).toContain(next);
    expect(await idsOfUnfinished()).toEqual([failing]);
    onErase.mockRestore();
    await purge(service);
    expect(await idsOfUnfinished()).toEqual([]);
  });

  it('deletes the data of no customer twice if its pass ends at the third error of an unavailable database', async () => {
    for (let at = 0; at < 5; at++) await newCustomer(service);
    service.passDays(IDLE_DAYS + 2);
    let isAvailable = true;
    const finished: string[] = [];
    const onErase = vi.spyOn(service.application.get(RetainingParticipant, { strict: false }), 'onErase');
    onErase.mockImplementation(async (entityId: string) => {
      if (!isAvailable) throw new ServiceUnavailableException('the database is unavailable');
      isAvailable = finished.push(entityId) !== 2;
    });
    await expect(purgeAgain()).rejects.toThrow('tables that cannot be purged: customer');
    expect([finished.length, onErase.mock.calls.length]).toEqual([2, 2 + 3]);
    isAvailable = true;
    await purge(service);
    expect(finished.length).toBeGreaterThanOrEqual(5);
    expect(new Set(finished).size).toBe(finished.length);
  });

  it('finishes the other customers of a step if the row of one cannot be deleted', async () => {
    const customers = service.application.get(Customers);
    const visits = [await newCustomer(service), await newCustomer(service), await newCustomer(service)];
    const [failing, ...others] = visits.map(({ entity_id }) => entity_id) as [string, string, string];
    service.passDays(IDLE_DAYS + 2);
    const deleteErased = customers.deleteErased.bind(customers);
    vi.spyOn(customers, 'deleteErased').mockImplementation(async (ids) => {
      if (ids.includes(failing)) throw new Error('no disk');
      await deleteErased(ids);
    });
    const onErase = vi.spyOn(service.application.get(CustomerDataParticipants), 'onErase');
    const warn = vi.spyOn(Logger.prototype, 'warn');
    await purgeAgain();
    const erased = onErase.mock.calls.map(([id]) => id);
    expect(erased).toEqual(expect.arrayContaining(others));
    for (const id of others) expect(await isPurged(id)).toBe(true);
    expect(await idsOfUnfinished()).toEqual([failing]);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`customer ${failing} is not deleted`)]]);
    vi.restoreAllMocks();
    await purge(service);
    expect(await idsOfUnfinished()).toEqual([]);
  });

  it('purges no customer that an extension retains, or if the extension fails', async () => {
    const mustRetain = vi.spyOn(service.application.get(RetainingParticipant, { strict: false }), 'mustRetain');
    const { entity_id } = await newCustomer(service);
    service.passDays(IDLE_DAYS + 2);
    mustRetain.mockRejectedValue(new Error('the table is locked'));
    await expect(purgeAgain()).rejects.toThrow();
    expect(await isPurged(entity_id)).toBe(false);
    mustRetain.mockImplementation(async (ids) => ids);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(false);
    mustRetain.mockRestore();
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(true);
  });

  it.each([
    ['customers', /AS is_idle/],
    ['sessions', /NOT\(\WSession\W\.\Worganization_id\W IS NULL\)/],
  ])('reads the table of %s once a day', async (_, text) => {
    await purgeAgain();
    const database = service.application.get(Database);
    const sends = vi.spyOn(database as unknown as Sender, 'sendWithRetries');
    const reads = () => sends.mock.calls.filter(([sql]) => text.test(sql)).length;
    await purge(service);
    expect(reads()).toBe(0);
    service.passDays(1);
    await purge(service);
    expect(reads()).toBeGreaterThan(0);
  });
});

describe('a token that is requested while its customer is purged', () => {
  /** Runs `act` right before or after the transaction that purges customers. */
  function duringPurge(moment: 'before' | 'after', act: () => Promise<unknown>): void {
    const participants = service.application.get(CustomerDataParticipants);
    vi.spyOn(participants, 'mustRetain').mockImplementationOnce(async () => {
      atNextTransaction(service, moment, act);
      return [];
    });
  }

  it.each(['before', 'after'] as const)('by an agent, right %s the purge, leaves no valid token', async (moment) => {
    const { entity_id } = await newCustomer(service);
    service.passDays(IDLE_DAYS + 2);
    const responses: Awaited<ReturnType<typeof byAgent>>[] = [];
    duringPurge(moment, async () => responses.push(await byAgent(entity_id)));
    await purge(service);
    const [response] = responses;
    expect(await isPurged(entity_id)).toBe(moment === 'after');
    if (moment === 'after') expectInvalidRequest(response as never, /^entity_id: unknown$/);
    else expect(await infoStatus(service, response?.body.access_token)).toBe(200);
  });

  it('is not purged as long as a transfer token leads to it', async () => {
    const { entity_id } = await newCustomer(service);
    service.passDays(IDLE_DAYS + 2);
    const agent = await issueAgentToken(service);
    const code = await transferToken(service, agent, { bearer_type: 'agent', customer_id: entity_id });
    await identitiesOf(service).update({ entityId: entity_id }, { seenDay: 1 });
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(false);
    expect((await redeem(service, code)).status).toBe(200);
  });
});

it('the day of the last token costs one UPDATE for the first token of a day by an agent, and none for a customer of an agent', async () => {
  const agent = bearer(await issueAgentToken(service));
  const { entity_id } = await newCustomer(service);
  const ofAgent = (await service.post(TOKEN, agentTokenBody(), agent)).body.entity_id;
  service.passDays(0.9);
  service.passDays(0.2);
  const fresh = bearer(await issueAgentToken(service));
  const send = (id: string) => service.post(TOKEN, agentTokenBody({ entity_id: id }), fresh);
  expect(await statementsOf(service, () => send(entity_id))).toEqual(['SELECT', 'SELECT', 'UPDATE']);
  expect(await statementsOf(service, () => send(entity_id))).toEqual(['SELECT', 'SELECT']);
  expect(await statementsOf(service, () => send(ofAgent))).toEqual(['SELECT', 'SELECT']);
});
