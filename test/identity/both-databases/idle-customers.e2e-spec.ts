import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RecordedValue } from '../../../src/access-token/recorded-values.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { UnfinishedErasure } from '../../../src/identity/customer-identity.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { rememberedPair } from '../../support/remember.js';
import { sqlOf, statementsOf } from '../../support/statements.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { DAY_SECONDS, useService } from '../../support/use-service.js';

const IDLE_DAYS = 30;
const GROUP = `/v2/customer/${ACME}/sales/token`;
const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };

function registry(): ReturnType<typeof refreshingRegistry> {
  const all = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  all.organizations = all.organizations.map((entry) =>
    'id' in entry && entry.id === ACME ? { ...entry, idle_days: IDLE_DAYS } : entry,
  );
  return all;
}

const service = useService({ registry: registry() });
afterEach(async () => {
  vi.restoreAllMocks();
  service.clock.reset();
  await forgetPass();
});

const pass = (days: number, of = service) => of.clock.advance({ seconds: days * DAY_SECONDS });
/** Lets the purge of idle customers run again on the same day. */
const forgetPass = (of = service) =>
  of.application.get(DataSource).getRepository(RecordedValue).delete({ name: 'idle_customers_purged_day' });
const purgeAgain = async () => {
  await forgetPass();
  return purge(service);
};
const rowOf = (entityId: string, of = service) => identitiesOf(of).findOneBy({ entityId });
const isPurged = async (entityId: string) => (await rowOf(entityId))?.erasedAt !== null;
const byAgent = async (entity_id: string) =>
  service.post(TOKEN, agentTokenBody({ entity_id }), bearer(await issueAgentToken(service)));
const visitWith = (cookie: string) => service.post(TOKEN, cookieBody(), { cookie });

describe('protocol §5.9: the purge of idle customers', () => {
  it('deletes a customer that its browser has not used for idle_days, and leaves the browser its other customers', async () => {
    const browser = new TestBrowser(service);
    const rival = (await browser.visit(AT_RIVAL)).body.entity_id;
    const [first, sales] = [(await browser.visit()).body.entity_id, (await browser.visit({}, GROUP)).body.entity_id];
    pass(IDLE_DAYS);
    await purge(service);
    expect([await isPurged(first), await isPurged(sales)]).toEqual([false, false]);
    expect((await browser.visit({}, GROUP)).body.entity_id).toBe(sales);
    pass(2);
    await purge(service);
    expect([await isPurged(first), await isPurged(sales), await isPurged(rival)]).toEqual([true, false, false]);
    const withIdOfPurged = (browser.cookie as string).replace(/(__svc_cid=)[^;]+/, `$1${first}`);
    expect((await service.post(TOKEN, cookieBody(AT_RIVAL), { cookie: withIdOfPurged })).body.entity_id).toBe(rival);
    expect((await browser.visit({}, GROUP)).body.entity_id).toBe(sales);
    const next = (await browser.visit()).body.entity_id;
    expect(next).not.toBe(first);
    expect((await browser.visit()).body.entity_id).toBe(next);
  });

  it('deletes the row of a purged customer two days later, and the browser with its links 2 years after its visit', async () => {
    const browser = new TestBrowser(service);
    const first = (await browser.visit()).body.entity_id;
    const rival = (await browser.visit(AT_RIVAL)).body.entity_id;
    pass(IDLE_DAYS + 2);
    await purge(service);
    expect(await rowOf(first)).toMatchObject({ groupId: null, creator: null, lastTokenDay: null, createdAt: null });
    expect((await browser.visit(AT_RIVAL)).body.entity_id).toBe(rival);
    pass(740);
    await purgeAgain();
    expect([await rowOf(first), await isPurged(rival)]).toEqual([null, true]);
    pass(3);
    await purgeAgain();
    expect(await rowOf(rival)).toBeNull();
  });

  it.each<[string, (entityId: string, token: string) => Promise<() => Promise<string>>]>([
    ['an agent', async (entityId) => async () => (await byAgent(entityId)).body.entity_id],
    [
      'a browser link',
      async (_, token) => {
        let cookie = await rememberedPair(service, token);
        return async () => {
          const response = await visitWith(cookie);
          cookie = cookieHeader(response);
          return response.body.entity_id;
        };
      },
    ],
    [
      'a refresh family',
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
      pass(days);
      expect(await use()).toBe(entity_id);
      await purgeAgain();
      expect(await isPurged(entity_id)).toBe(false);
    }
    pass(IDLE_DAYS);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(false);
    pass(2);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(true);
  });

  it('counts the last token of a transfer and of a link that was forgotten since', async () => {
    const [moved, linked] = [await newCustomer(service), await newCustomer(service)];
    const code = await transferToken(service, moved.access_token);
    const pair = await rememberedPair(service, linked.access_token);
    pass(20);
    expect((await visitWith(pair)).body.entity_id).toBe(linked.entity_id);
    const forgotten = { client_id: ACME_SITE, organization_id: ACME };
    expect((await service.post('/v2/customer/forget', forgotten, { cookie: pair })).status).toBe(200);
    pass(-19.98);
    expect((await redeem(service, code)).status).toBe(200);
    pass(19.98 + 12);
    await purge(service);
    expect([await isPurged(moved.entity_id), await isPurged(linked.entity_id)]).toEqual([true, false]);
    pass(20);
    await purge(service);
    expect(await isPurged(linked.entity_id)).toBe(true);
  });

  it('never deletes a customer that an agent created, or that has an external_id', async () => {
    const agent = bearer(await issueAgentToken(service));
    const ids = [];
    for (const more of [{}, { external_id: 'idle-user' }])
      ids.push((await service.post(TOKEN, agentTokenBody(more), agent)).body.entity_id);
    pass(900);
    await purge(service);
    for (const id of ids) expect(await isPurged(id)).toBe(false);
  });

  it('asks the participants first, and lets them delete their data of purged customers only', async () => {
    const participants = service.application.get(CustomerDataParticipants);
    const [retained, purged] = [(await newCustomer(service)).entity_id, (await newCustomer(service)).entity_id];
    const onErase = vi.spyOn(participants, 'onErase');
    vi.spyOn(participants, 'mustRetain').mockImplementation(async (ids) => ids.filter((id) => id === retained));
    pass(IDLE_DAYS + 2);
    await purge(service);
    expect([await isPurged(retained), await isPurged(purged)]).toEqual([false, true]);
    const erased = onErase.mock.calls.map(([id]) => id);
    expect(erased).toContain(purged);
    expect(erased).not.toContain(retained);
  });

  it('goes on with the other customers if a participant fails for one, logs it, and tries again in each purge', async () => {
    const participants = service.application.get(CustomerDataParticipants);
    const unfinished = service.rowsOf(UnfinishedErasure);
    const idsOfUnfinished = async () => (await unfinished.find()).map(({ entityId }) => entityId);
    const failing = (await newCustomer(service)).entity_id;
    const others = [(await newCustomer(service)).entity_id, (await newCustomer(service)).entity_id];
    pass(IDLE_DAYS + 2);
    const onErase = vi.spyOn(participants, 'onErase').mockImplementation(async (id) => {
      if (id === failing) throw new Error('no disk');
    });
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const erased = () => onErase.mock.calls.map(([id]) => id);
    await purge(service);
    for (const id of others) expect(erased()).toContain(id);
    expect(await idsOfUnfinished()).toEqual([failing]);
    expect(warn.mock.calls.join()).toMatch(new RegExp(`${failing}.*no disk`));
    // the next purge begins with the customer that failed
    await unfinished.insert({ entityId: others[0] as string });
    onErase.mockClear();
    await purge(service);
    expect(erased()).toEqual([failing, others[0]]);
    expect(await idsOfUnfinished()).toEqual([failing]);
    onErase.mockRestore();
    await purge(service);
    expect(await idsOfUnfinished()).toEqual([]);
  });

  it('goes on with the other customers if the rows of one cannot be counted, and logs it', async () => {
    const participants = service.application.get(CustomerDataParticipants);
    const unfinished = service.rowsOf(UnfinishedErasure);
    await unfinished.insert([{ entityId: uuidv7(1) }, { entityId: uuidv7(2) }]);
    const warn = vi.spyOn(Logger.prototype, 'warn');
    vi.spyOn(participants, 'ownRows', 'get').mockImplementationOnce(() => {
      throw new Error('no disk');
    });
    await purge(service);
    expect(await unfinished.count()).toBe(1);
    expect(warn.mock.calls.join()).toContain('no disk');
    await purge(service);
    expect(await unfinished.count()).toBe(0);
  });

  it('deletes a customer that was created for a link as soon as no transfer token can lead to it', async () => {
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token);
    pass(IDLE_DAYS + 2);
    const { entity_id, access_token } = (await visitWith(pair)).body;
    pass(IDLE_DAYS + 2);
    await purgeAgain();
    expect(await isPurged(entity_id)).toBe(true);
    expect(await rowOf(entity_id)).not.toBeNull();
    pass(3);
    await purgeAgain();
    expect(await rowOf(entity_id)).toBeNull();
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('reads the table once a day', async () => {
    await purgeAgain();
    const database = service.application.get(Database);
    const select = vi.spyOn(database, 'select');
    const reads = () => select.mock.calls.filter(([each]) => sqlOf(database, each).includes('AS is_deletable')).length;
    await purge(service);
    expect(reads()).toBe(0);
    pass(1);
    await purge(service);
    expect(reads()).toBeGreaterThan(0);
  });
});

describe('a token that is requested while its customer is purged', () => {
  /** Runs `act` right before or after the transaction that purges customers. */
  function duringPurge(moment: 'before' | 'after', act: () => Promise<unknown>): void {
    const database = service.application.get(Database);
    const transaction = database.transaction.bind(database);
    const participants = service.application.get(CustomerDataParticipants);
    vi.spyOn(participants, 'mustRetain').mockImplementationOnce(async () => {
      vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
        if (moment === 'before') await act();
        const result = await transaction(work);
        if (moment === 'after') await act();
        return result as never;
      });
      return [];
    });
  }

  it.each(['before', 'after'] as const)('by an agent, right %s the purge, leaves no valid token', async (moment) => {
    const { entity_id } = await newCustomer(service);
    pass(IDLE_DAYS + 2);
    const responses: Awaited<ReturnType<typeof byAgent>>[] = [];
    duringPurge(moment, async () => responses.push(await byAgent(entity_id)));
    await purge(service);
    const [response] = responses;
    expect(await isPurged(entity_id)).toBe(moment === 'after');
    if (moment === 'after') expectInvalidRequest(response as never, /^entity_id: unknown$/);
    else expect(await infoStatus(service, response?.body.access_token)).toBe(200);
  });

  it.each(['before', 'after'] as const)('by a transfer token, right %s the purge, leaves no link', async (moment) => {
    const { entity_id } = await newCustomer(service);
    pass(IDLE_DAYS + 2);
    const agent = await issueAgentToken(service);
    const code = await transferToken(service, agent, { bearer_type: 'agent', customer_id: entity_id });
    await identitiesOf(service).update({ entityId: entity_id }, { lastTokenDay: null });
    const responses: Awaited<ReturnType<typeof redeem>>[] = [];
    duringPurge(moment, async () => responses.push(await redeem(service, code)));
    await purge(service);
    expect(await isPurged(entity_id)).toBe(moment === 'after');
    if (moment === 'after') expectInvalidGrant(responses[0] as never);
    else expect(responses[0]?.status).toBe(200);
  });
});

describe('the day of the last token', () => {
  it('costs one UPDATE for the first token of a day by an agent, and none for a customer of an agent', async () => {
    const agent = bearer(await issueAgentToken(service));
    const { entity_id } = await newCustomer(service);
    const ofAgent = (await service.post(TOKEN, agentTokenBody(), agent)).body.entity_id;
    pass(0.9);
    pass(0.2);
    const fresh = bearer(await issueAgentToken(service));
    const send = (id: string) => service.post(TOKEN, agentTokenBody({ entity_id: id }), fresh);
    expect(await statementsOf(service, () => send(entity_id))).toEqual(['SELECT', 'SELECT', 'UPDATE']);
    expect(await statementsOf(service, () => send(entity_id))).toEqual(['SELECT', 'SELECT']);
    expect(await statementsOf(service, () => send(ofAgent))).toEqual(['SELECT', 'SELECT']);
  });
});
