import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { CustomerEvent } from '../../../src/feed/customer-event.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { EVENT_SERVERS, EventConsumer } from '../../support/customer-events.js';
import { failAtEachStatement, OUTAGE } from '../../support/dying-transactions.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { identitiesOf } from '../../support/identities.js';
import { forgetPurgeOfDay, issueAgentToken, purge } from '../../support/operator-commands.js';
import { POLL_PAUSE_MS } from '../../support/revocation-feed.js';
import {
  FROM_PAGE,
  LINK,
  newUser,
  other,
  REMEMBER,
  service,
  signInAs,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { ACME, ACME_SITE } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { shortenPauses } from '../../support/timers.js';
import { newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, DAY_SECONDS } from '../../support/use-service.js';

startSignInServices({ resource_servers: EVENT_SERVERS });
beforeEach(() => shortenPauses(POLL_PAUSE_MS));

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const organization_id = ACME;
const erased = (entity_id: string) => ({ kind: 'customer.erased', organization_id, entity_id });
const sessionsEnded = (entity_id: string) => ({ kind: 'customer.sessions_ended', organization_id, entity_id });

const follower = () => new EventConsumer([service, other]);
/** A consumer that has read everything so far. */
async function currentFollower(): Promise<EventConsumer> {
  const consumer = follower();
  await consumer.catchUp();
  consumer.events.length = 0;
  return consumer;
}

async function newVisitor(): Promise<{ entityId: string; cookie: string }> {
  const response = await service.visit();
  return { entityId: response.body.entity_id, cookie: cookieHeader(response) };
}
async function signedIn(sub: string, cookie: string, more: object = LINK): Promise<TestResponse> {
  const response = await signInAs(sub, more, { ...FROM_PAGE, cookie });
  expect(response.status).toBe(200);
  return response;
}
/** A known user to whom a visitor's customer was linked. */
async function linked(): Promise<{ visitor: string; user: string; sub: string; cookie: string }> {
  const [visitor, sub] = [await newVisitor(), newUser()];
  const user = (await signInAs(sub)).body.entity_id;
  const { body } = await signedIn(sub, visitor.cookie);
  expect(body.linked_entity_id).toBe(visitor.entityId);
  return { visitor: visitor.entityId, user, sub, cookie: visitor.cookie };
}

describe('protocol §7.8: an event', () => {
  it('says that a visitor’s customer was linked to a user’s, once', async () => {
    const before = service.clock.now();
    const { visitor, user, sub, cookie } = await linked();
    const consumer = follower();
    const event = { kind: 'customer.linked', organization_id, from: visitor, into: user };
    expect(await consumer.about(visitor)).toEqual([event]);
    await signedIn(sub, cookie);
    await endSessionsAsOperator(service, ADMIN_TOKEN, user);
    expect(await consumer.about(user, 2)).toEqual([event, sessionsEnded(user)]);
    const [{ id, time } = { id: '', time: '' }] = consumer.events.slice(-2);
    expect(id).toMatch(UUID_V7);
    expect(Date.parse(time)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(time)).toBeLessThanOrEqual(service.clock.now());
  });

  it('says that a visitor’s customer became a user’s', async () => {
    const { entityId, cookie } = await newVisitor();
    expect((await signedIn(newUser(), cookie)).body.entity_id).toBe(entityId);
    expect(await follower().about(entityId)).toEqual([
      { kind: 'customer.became_user', organization_id, entity_id: entityId },
    ]);
  });

  it.each<[string, (entityId: string, token: string) => Promise<TestResponse>]>([
    ['the customer', (_, token) => endSessions(service, token)],
    ['the operator', (entityId) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, { browsers: true })],
    ['an agent', async (entityId) => endSessions(service, await issueAgentToken(service), { customer_id: entityId })],
  ])('says that %s ended the sessions of a customer', async (_, end) => {
    const { entity_id, access_token } = await newCustomer(service);
    expect((await end(entity_id, access_token)).status).toBe(200);
    expect(await follower().about(entity_id)).toEqual([sessionsEnded(entity_id)]);
  });

  it('that sessions ended replaces an earlier one, and a consumer that has read that one gets it too', async () => {
    const { entity_id } = await newCustomer(service);
    const consumer = await currentFollower();
    for (const count of [1, 2, 3]) {
      await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
      expect(await consumer.about(entity_id, count)).toHaveLength(count);
    }
    expect(new Set(consumer.naming(entity_id).map(({ id }) => id)).size).toBe(3);
    expect(await service.rowsOf(CustomerEvent).countBy({ customerId: entity_id })).toBe(1);
  });

  it('says that a customer was erased, and replaces all earlier ones that name the customer', async () => {
    const { entityId, cookie } = await newVisitor();
    const consumer = await currentFollower();
    await signedIn(newUser(), cookie);
    await endSessionsAsOperator(service, ADMIN_TOKEN, entityId);
    expect(await consumer.about(entityId, 2)).toHaveLength(2);
    for (let repetition = 0; repetition < 2; repetition++) expect((await service.erase(entityId)).status).toBe(200);
    expect((await consumer.about(entityId, 3)).at(-1)).toEqual(erased(entityId));
    const late = follower();
    await late.catchUp();
    expect(await late.about(entityId)).toEqual([erased(entityId)]);
  });

  it('says of each customer that was linked to an erased user that it was erased, if that may not have been read', async () => {
    const { visitor, user } = await linked();
    expect((await service.erase(user)).status).toBe(200);
    const consumer = follower();
    await consumer.catchUp();
    expect(await consumer.about(user)).toEqual([erased(user)]);
    expect(await consumer.about(visitor)).toEqual([erased(visitor)]);
    expect(new Set(consumer.events.map(({ id }) => id)).size).toBe(consumer.events.length);
  });

  it('says that a linked customer was erased, and no longer to whom it was linked', async () => {
    const { visitor, user } = await linked();
    expect((await service.erase(visitor)).status).toBe(200);
    expect(await follower().about(visitor)).toEqual([erased(visitor)]);
    const consumer = follower();
    await consumer.catchUp();
    expect(consumer.naming(user)).toEqual([]);
  });

  it('says nothing of anything else', async () => {
    const consumer = await currentFollower();
    const { entityId, cookie } = await newVisitor();
    const { access_token } = (await service.visit(cookie)).body;
    const moved = (await redeem(service, await transferToken(service, access_token))).body;
    await service.send('DELETE', TOKEN, bearer(moved.access_token));
    await service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie });
    const sub = newUser();
    await signedIn(sub, cookie, REMEMBER);
    await signedIn(sub, cookie, REMEMBER);
    const agent = bearer(await issueAgentToken(service));
    await service.post(TOKEN, agentTokenBody(), agent);
    await service.post(TOKEN, agentTokenBody({ external_id: newUser() }), agent);
    service.passDays(800);
    await forgetPurgeOfDay(service);
    await purge(service);
    service.clock.reset();
    expect(await identitiesOf(service).existsBy({ entityId })).toBe(false);
    const { entity_id } = await newCustomer(service);
    await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
    await consumer.about(entity_id);
    await consumer.catchUp();
    expect(consumer.events).toHaveLength(1);
  });

  it('is in the database exactly if its change is, whichever statement of the transaction fails', async () => {
    const before = await service.rowsOf(CustomerEvent).count();
    let attempts = 0;
    await failAtEachStatement(service, OUTAGE, async (hasFailed) => {
      attempts++;
      const { status } = await service.erase((await newVisitor()).entityId);
      expect(status === 200).toBe(!hasFailed());
      if (hasFailed()) expect(await service.rowsOf(CustomerEvent).count()).toBe(before);
    });
    expect(attempts).toBeGreaterThan(10);
    expect(await service.rowsOf(CustomerEvent).count()).toBe(before + 1);
  });
});

describe('protocol §7.8: the events that are kept', () => {
  it('are those of EVENT_DAYS, after which the purge deletes them', async () => {
    const { entity_id } = await newCustomer(service);
    await service.erase(entity_id);
    await follower().about(entity_id);
    service.passDays(6.9);
    expect(await follower().about(entity_id)).toEqual([erased(entity_id)]);
    service.passDays(0.2);
    const late = follower();
    await late.catchUp();
    expect(late.naming(entity_id)).toEqual([]);
    await purge(service);
    expect(await service.rowsOf(CustomerEvent).existsBy({ customerId: entity_id })).toBe(false);
  });

  it('are in the export of each customer that they name, and of no other', async () => {
    const { visitor, user } = await linked();
    const ISO = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    for (const entityId of [visitor, user]) {
      const { tables } = (await service.admin('GET', `/admin/customers/${entityId}/export`)).body;
      expect(tables.customer_event).toEqual([
        {
          ...{ id: expect.stringMatching(UUID_V7), kind: 'customer.linked', organization_id },
          ...{ customer_id: visitor, into_id: user, created_at: ISO, expires_at: ISO },
        },
      ]);
    }
    const { entity_id } = await newCustomer(service);
    const { tables } = (await service.admin('GET', `/admin/customers/${entity_id}/export`)).body;
    expect(tables).not.toHaveProperty('customer_event');
  });

  it('are in the export of a user with many linked customers up to 1,000, and then it says that there are more', async () => {
    const { entity_id } = await newCustomer(service);
    const createdAt = new Date(service.clock.now());
    const expiresAt = new Date(service.clock.now() + DAY_SECONDS * 1000);
    const rows = Array.from({ length: 1_001 }, () => ({
      ...{ id: randomUUID(), kind: 'customer.linked' as const, organizationId: ACME, customerId: randomUUID() },
      ...{ intoId: entity_id, createdAt, expiresAt, position: null },
    }));
    const exported = async () => (await service.admin('GET', `/admin/customers/${entity_id}/export`)).body;
    for (let first = 0; first < 1_000; first += 100)
      await service.rowsOf(CustomerEvent).insert(rows.slice(first, first + 100));
    expect(await exported()).not.toHaveProperty('truncated');
    await service.rowsOf(CustomerEvent).insert(rows.slice(1_000));
    const { tables, truncated } = await exported();
    expect({ rows: tables.customer_event.length, truncated }).toEqual({ rows: 1_000, truncated: true });
  });
});
