import { Injectable, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BrowserLink } from '../../../src/identity/browser-link.entity.js';
import { UnfinishedErasure } from '../../../src/identity/customer-identity.entity.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { CustomerDataParticipants, IdentityModule } from '../../../src/public/grant.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { familiesOf, refreshCustomer, stayOf } from '../../support/customer-refresh.js';
import { failAtEachStatement, OUTAGE } from '../../support/dying-transactions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { ERASE, manageCustomer, managerToken, managingRegistry } from '../../support/managed-customers.js';
import { purge } from '../../support/operator-commands.js';
import { moveOf, remember } from '../../support/remember.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const MAX_ROWS = 1_000;

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
let dataSource: DataSource;
let agent: string;
beforeAll(async () => {
  dataSource = service.application.get(DataSource);
  agent = await managerToken(service);
});
afterEach(() => {
  deletions.behaviors = [working, working];
});

const erase = (named: object) => manageCustomer(service, ERASE, agent, named);
const tokenOf = async (named: object) => (await service.post(TOKEN, agentTokenBody(named), bearer(agent))).body;
const linkCount = (entityId: string) =>
  dataSource
    .getRepository(BrowserLink)
    .createQueryBuilder('link')
    .where('link.entityId = :entityId AND link.organizationId IS NOT NULL', { entityId })
    .getCount();
const erasureEvents = (id: string) =>
  service.audit.filter(({ event, subject }) => event === 'identity.erased' && subject?.id === id);

/** Adds links of other browsers, until the customer has this number of links. */
async function addLinks(entityId: string, count: number): Promise<void> {
  const links = dataSource.getRepository(BrowserLink);
  const [link] = await links.findBy({ entityId });
  const at = Date.now();
  const copies = Array.from({ length: count - 1 }, () => ({ ...link, browserId: uuidv7(at), beganIn: uuidv7(at) }));
  for (let from = 0; from < copies.length; from += 500) await links.insert(copies.slice(from, from + 500));
}

describe('protocol §4.16: the erasure of a customer by an agent', () => {
  it('ends everything, deletes the external id, and can be repeated by customer_id only', async () => {
    const { entity_id, access_token } = await tokenOf({ external_id: 'user-who-is-erased' });
    const pair = cookieHeader(await remember(service, await moveOf(service, access_token)));
    const { refresh_token } = await stayOf(service, access_token);
    const code = await transferToken(service, access_token);
    expect(await erase({ external_id: 'user-who-is-erased' })).toMatchObject({ status: 200, body: {} });
    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await redeem(service, code));
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect((await service.post(TOKEN, cookieBody(), { cookie: pair })).body.entity_id).not.toBe(entity_id);
    expect(await familiesOf(service, entity_id)).toEqual([]);
    expect(await linkCount(entity_id)).toBe(0);
    expect(await dataSource.getRepository(UnfinishedErasure).countBy({ entityId: entity_id })).toBe(0);

    expect(await erase({ customer_id: entity_id })).toMatchObject({ status: 200, body: {} });
    expectInvalidRequest(await erase({ external_id: 'user-who-is-erased' }), 'external_id: unknown');
    expect(erasureEvents(entity_id)).toHaveLength(1);
    const next = await tokenOf({ external_id: 'user-who-is-erased' });
    expect(next.created).toBe(true);
    expect(next.entity_id).not.toBe(entity_id);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect(await infoStatus(service, next.access_token)).toBe(200);
  });

  it.each([
    ['at most 1,000 rows at once', MAX_ROWS, 0],
    ['no row of more than 1,000, which the purge deletes', MAX_ROWS + 1, MAX_ROWS + 1],
    ['no row of 5,000, which the purge deletes', 5_000, 5_000],
  ])('deletes %s', async (_, count, left) => {
    const visitor = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = visitor.body;
    await addLinks(entity_id, count);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect(deletions.asked.map((asked) => asked.filter((id) => id === entity_id).length)).toEqual([1, 1]);
    expect(await linkCount(entity_id)).toBe(left);
    expect(await infoStatus(service, access_token)).toBe(401);
    const returning = await service.post(TOKEN, cookieBody(), { cookie: cookieHeader(visitor) });
    expect(returning.body.entity_id).not.toBe(entity_id);
    await purge(service);
    expect(await linkCount(entity_id)).toBe(0);
    expect(await dataSource.getRepository(UnfinishedErasure).countBy({ entityId: entity_id })).toBe(0);
  });

  it('counts the rows of all tables together', async () => {
    const { entity_id, access_token } = (await service.post(TOKEN, cookieBody())).body;
    await stayOf(service, access_token);
    await addLinks(entity_id, MAX_ROWS);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect([await linkCount(entity_id), (await familiesOf(service, entity_id)).length]).toEqual([MAX_ROWS, 1]);
    await purge(service);
    expect([await linkCount(entity_id), (await familiesOf(service, entity_id)).length]).toEqual([0, 0]);
  });
});

describe('protocol §4.16: the erasure of a customer of whom extensions have data', () => {
  it.each<[string, Deletion]>([
    [
      'fails',
      async () => {
        throw new Error('the table of the extension is locked');
      },
    ],
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
    expect((await erase({ customer_id: entity_id })).status).toBe(503);

    deletions.behaviors = [working, working];
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    for (const asked of deletions.asked) expect(asked.at(-1)).toBe(entity_id);
    expect(await dataSource.getRepository(UnfinishedErasure).countBy({ entityId: entity_id })).toBe(0);
    expect(erasureEvents(entity_id)).toHaveLength(1);
  });

  it('is finished by the purge if it is not repeated', async () => {
    const { entity_id } = await newCustomer(service);
    deletions.behaviors = [() => Promise.reject(new Error('away')), working];
    expect((await erase({ customer_id: entity_id })).status).toBe(503);
    await purge(service);
    expect(await dataSource.getRepository(UnfinishedErasure).countBy({ entityId: entity_id })).toBe(1);
    deletions.behaviors = [working, working];
    await purge(service);
    expect(deletions.asked[0].at(-1)).toBe(entity_id);
    expect(await dataSource.getRepository(UnfinishedErasure).countBy({ entityId: entity_id })).toBe(0);
  });
});

describe('protocol §4.16: an erasure at the same time as other requests', () => {
  it('is one erasure if it is sent 8 times at once', async () => {
    const { entity_id, access_token } = await tokenOf({ external_id: 'user-erased-eight-times' });
    const statuses = await Promise.all(Array.from({ length: 8 }, () => erase({ customer_id: entity_id })));
    expect(statuses.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(erasureEvents(entity_id)).toHaveLength(1);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await identitiesOf(service).findOneByOrFail({ entityId: entity_id })).toMatchObject({ generation: 1 });
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
