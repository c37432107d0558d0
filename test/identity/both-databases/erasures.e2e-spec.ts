import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CustomerDataParticipant, defineExtension } from '../../../src/public/grant.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { tablesWith } from '../../support/all-tables.js';
import { registryWithSignIn, SignInSystem, signIn } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshSessionsOf, stayOf } from '../../support/customer-refresh.js';
import { failAtEachStatement, OUTAGE } from '../../support/dying-transactions.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { browserPartOf, expectNoOrphans, identitiesOf } from '../../support/identities.js';
import { ERASE, manageCustomer, managerToken, managingRegistry } from '../../support/managed-customers.js';
import { forgetPurgeOfDay, purge } from '../../support/operator-commands.js';
import { moveOf, remember, rememberedPair } from '../../support/remember.js';
import { FROM_PAGE, LINK } from '../../support/sign-in-services.js';
import { ACME, AT_RIVAL, UNKNOWN_CUSTOMER } from '../../support/test-registry.js';
import { infoStatus, newCustomer, sessionsIn, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const GROUP = `/v2/customer/${ACME}/sales/token`;
/** Longer than any access token lives. */
const ENDINGS_DAYS = 1.01;

type Deletion = (entityId: string) => Promise<void>;

/** Two extensions with data of customers, and the customers whose data each one was asked to delete. */
const working: Deletion = async () => undefined;
const deletions: { behaviors: [Deletion, Deletion]; asked: [string[], string[]] } = {
  behaviors: [working, working],
  asked: [[], []],
};

class FirstParticipant implements CustomerDataParticipant {
  protected readonly index: 0 | 1 = 0;

  async onErase(entityId: string): Promise<void> {
    deletions.asked[this.index].push(entityId);
    await deletions.behaviors[this.index](entityId);
  }
}

class SecondParticipant extends FirstParticipant {
  protected override readonly index = 1;
}

const extension = defineExtension({ participants: [FirstParticipant, SecondParticipant] });

let users: SignInSystem;
const service = useService(async () => {
  users = await SignInSystem.start();
  const registry = registryWithSignIn({ [ACME]: users.settings() }, managingRegistry());
  return { registry, ...extension };
});

let agent: string;
beforeAll(async () => {
  agent = await managerToken(service);
});
afterAll(() => users?.issuer.stop());
afterEach(() => {
  deletions.behaviors = [working, working];
});

const erase = (named: object) => manageCustomer(service, ERASE, agent, named);
const requestFor = (named: object) => service.post(TOKEN, agentTokenBody(named), bearer(agent));
const tokenOf = async (named: object) => (await requestFor(named)).body;
const isStored = (entityId: string) => identitiesOf(service).existsBy({ entityId });
const sessionCount = (customerId: string) => sessionsIn(service).countBy({ customerId });
const erasureEvents = (id: string) =>
  service.audit.filter(({ event, subject }) => event === 'identity.erased' && subject?.id === id);

describe('protocol §5.8: after the erasure of a customer', () => {
  it('no table has its sessions or its external_id, and only what has ended and its event have its id, as long as they are kept', async () => {
    const named = { external_id: 'user-who-is-erased' };
    const { entity_id, access_token } = await tokenOf(named);
    await remember(service, await moveOf(service, access_token));
    const { refresh_token } = await stayOf(service, access_token);
    await transferToken(service, access_token);
    const sessions = await sessionsIn(service).findBy({ customerId: entity_id });
    expect(sessions.map(({ kind }) => kind).sort()).toEqual(['code', 'refresh', 'token', 'transferred']);
    const ids = sessions.flatMap(({ id, browserId, codeHash, refreshIdHash }) =>
      [id, browserId, codeHash, refreshIdHash].filter((text) => text !== null),
    );
    expect(await tablesWith(service, [entity_id])).toEqual(['customer', 'customer_key', 'session']);
    expect(await tablesWith(service, ids)).toEqual(['browser', 'session']);

    expect((await service.erase(entity_id)).status).toBe(200);
    expect(await tablesWith(service, [entity_id])).toEqual(['customer_event', 'ended']);
    expect(await tablesWith(service, ids)).toEqual([]);
    await expectNoOrphans(service);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect(await infoStatus(service, access_token)).toBe(401);
    const path = `/admin/customers?organization_id=${ACME}&external_id=${named.external_id}`;
    expect((await service.admin('GET', path)).status).toBe(404);
    const again = await tokenOf(named);
    expect(again.created).toBe(true);
    expect(again.entity_id).not.toBe(entity_id);
    service.passDays(ENDINGS_DAYS);
    await purge(service);
    expect(await tablesWith(service, [entity_id])).toEqual(['customer_event']);
  });

  it('a browser that leads to no other customer has no secret any more, and another one keeps its own', async () => {
    const [alone, shared] = [new TestBrowser(service), new TestBrowser(service)];
    const { entity_id, access_token } = (await alone.visit()).body;
    const ofRival = (await shared.visit(AT_RIVAL)).body.entity_id;
    shared.cookie = await rememberedPair(service, access_token, shared.cookie);
    const cookies = [alone.cookie, shared.cookie];
    expect((await service.erase(entity_id)).status).toBe(200);
    const [next, kept] = [await alone.visit(), await shared.visit(AT_RIVAL)];
    expect(next.body.entity_id).not.toBe(entity_id);
    expect(cookies[0]).not.toContain(browserPartOf(next));
    expect(kept.body.entity_id).toBe(ofRival);
    expect(cookies[1]).toContain(browserPartOf(kept));
    expect((await shared.visit()).body.entity_id).not.toBe(entity_id);
  });

  it('no visitor’s customer that was linked to it names it, and none gets tokens again', async () => {
    const sub = 'user-with-a-visitor';
    const assert = () => users.assert(service.clock.now(), { sub });
    const { entity_id } = (await signIn(service, await assert())).body;
    const visitor = await service.visit();
    const linked = await signIn(service, await assert(), LINK, { ...FROM_PAGE, cookie: cookieHeader(visitor) });
    expect(linked.body.entity_id).toBe(entity_id);
    const { linked_ids } = (await service.admin('GET', `/admin/customers/${entity_id}`)).body;
    expect(linked_ids).toEqual([visitor.body.entity_id]);
    expect((await service.erase(entity_id)).status).toBe(200);
    expect(await tablesWith(service, [entity_id])).toEqual(['customer_event', 'ended']);
    expectInvalidRequest(await requestFor({ entity_id: visitor.body.entity_id }), 'entity_id: unknown');
    expect((await erase({ customer_id: visitor.body.entity_id })).status).toBe(200);
    expect(await isStored(visitor.body.entity_id)).toBe(false);
  });

  it('its tokens have ended even if an extension fails, and a second DELETE deletes the rest', async () => {
    const named = { external_id: 'user-of-a-failed-erasure' };
    const { entity_id, access_token } = await tokenOf(named);
    const { refresh_token } = await stayOf(service, access_token);
    deletions.behaviors = [() => Promise.reject(new Error('the table is locked')), working];
    expect((await service.erase(entity_id)).status).toBe(503);

    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect(await sessionCount(entity_id)).toBe(0);
    expect((await service.admin('GET', `/admin/customers/${entity_id}`)).status).toBe(404);
    expect((await requestFor(named)).status, 'the user has no other customer yet').toBe(503);
    deletions.behaviors = [working, working];
    expect((await service.erase(entity_id)).status).toBe(200);
    expect(await tablesWith(service, [entity_id])).toEqual(['customer_event', 'ended']);
    expect((await tokenOf(named)).created).toBe(true);
  });

  it('a DELETE that is repeated, or of an unknown customer, gets the response of a success, without an event', async () => {
    const { entity_id } = await newCustomer(service);
    const first = await service.erase(entity_id);
    const events = service.audit.length;
    for (const id of [entity_id, UNKNOWN_CUSTOMER]) {
      const { status, text } = await service.erase(id);
      expect({ status, text }).toEqual({ status: 200, text: first.text });
    }
    expect(service.audit).toHaveLength(events);
  });
});

describe('protocol §4.16: the erasure of a customer by an agent', () => {
  it('ends everything, deletes the external id, and can be repeated by either id', async () => {
    const external_id = 'user-who-is-erased-by-an-agent';
    const { entity_id, access_token } = await tokenOf({ external_id });
    await remember(service, await moveOf(service, access_token));
    await stayOf(service, access_token);
    expect(await erase({ external_id })).toMatchObject({ status: 200, body: {} });
    expect(await infoStatus(service, access_token)).toBe(401);
    expect([await isStored(entity_id), await sessionCount(entity_id)]).toEqual([false, 0]);

    for (const named of [{ customer_id: entity_id }, { external_id }])
      expect(await erase(named)).toMatchObject({ status: 200, body: {} });
    expect(erasureEvents(entity_id)).toHaveLength(1);
    const next = await tokenOf({ external_id });
    expect(next.created).toBe(true);
    expect(next.entity_id).not.toBe(entity_id);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect(await infoStatus(service, next.access_token)).toBe(200);
  });

  it('deletes the browsers and refresh tokens of 20 devices at once, and asks each extension once', async () => {
    const visitor = await service.visit();
    const { entity_id, access_token } = visitor.body;
    for (let device = 0; device < 10; device++) {
      await rememberedPair(service, access_token);
      await stayOf(service, access_token);
    }
    expect(await sessionCount(entity_id)).toBe(21);
    expect((await erase({ customer_id: entity_id })).status).toBe(200);
    expect(deletions.asked.map((asked) => asked.filter((id) => id === entity_id).length)).toEqual([1, 1]);
    expect([await sessionCount(entity_id), await refreshSessionsOf(service, entity_id)]).toEqual([0, []]);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await service.idOf(cookieHeader(visitor))).not.toBe(entity_id);
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
    if (name === 'fails') expect(deletions.asked[1], 'the other extension').toContain(entity_id);
    deletions.behaviors = [fails, working];
    for (const named of [{ customer_id: entity_id }, { external_id }]) expect((await erase(named)).status).toBe(503);

    deletions.behaviors = [working, working];
    const named = name === 'fails' ? { customer_id: entity_id } : { external_id };
    expect((await erase(named)).status).toBe(200);
    for (const asked of deletions.asked) expect(asked.at(-1)).toBe(entity_id);
    expect(await isStored(entity_id)).toBe(false);
    expect(erasureEvents(entity_id)).toHaveLength(1);
  });

  it('is finished by a purge if it is not repeated', async () => {
    const { entity_id } = await newCustomer(service);
    deletions.behaviors = [fails, working];
    expect((await erase({ customer_id: entity_id })).status).toBe(503);
    await forgetPurgeOfDay(service);
    await purge(service);
    expect(await isStored(entity_id)).toBe(true);
    deletions.behaviors = [working, working];
    await purge(service);
    expect(deletions.asked[0].at(-1)).toBe(entity_id);
    expect(await isStored(entity_id)).toBe(false);
  });
});

describe('protocol §4.16: an erasure at the same time as other requests', () => {
  it('is one erasure if it is sent 8 times at once', async () => {
    const { entity_id, access_token } = await tokenOf({ external_id: 'user-erased-eight-times' });
    const statuses = await Promise.all(Array.from({ length: 8 }, () => erase({ customer_id: entity_id })));
    expect(statuses.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(erasureEvents(entity_id)).toHaveLength(1);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await isStored(entity_id)).toBe(false);
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

describe('protocol §3.12: the tokens of a customer in a group', () => {
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

  it('stay ended after the erasure and the purge of the idle browser', async () => {
    const { entityId, token, phone } = await customerOfOtherBrowser();
    expect((await service.erase(entityId)).status).toBe(200);
    for (let round = 0; round < 3; round++) await purge(service);
    expect(await infoStatus(service, token)).toBe(401);
    expect(await isStored(entityId)).toBe(false);
    expect((await phone.visit({}, GROUP)).body.entity_id).not.toBe(entityId);
  });

  it('stay ended after the end of all sessions and the purge of the idle browser', async () => {
    const { entityId, token } = await customerOfOtherBrowser();
    expect((await endSessions(service, token)).status).toBe(200);
    for (let round = 0; round < 3; round++) await purge(service);
    expect(await infoStatus(service, token)).toBe(401);
    expect(await isStored(entityId), 'on the day of its last token').toBe(true);
  });
});
