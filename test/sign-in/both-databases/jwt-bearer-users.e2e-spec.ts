import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { REQUESTS_PER_RACE } from '../../../packages/conformance-kit/src/race.js';
import { CustomerKey } from '../../../src/customer/customer-key.entity.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { RIVAL_SIGN_IN, SIGN_IN, signIn } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction } from '../../support/dying-transactions.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { moveOf, remember } from '../../support/remember.js';
import {
  assert,
  assertRival,
  FROM_PAGE,
  LINK,
  linkedEvents,
  newUser,
  other,
  REMEMBER,
  service,
  signInAs,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { statementsOf } from '../../support/statements.js';
import { ACME, RIVAL, RIVAL_ORIGIN } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { infoStatus, redeem, TRANSFER, transferBody, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN } from '../../support/use-service.js';

startSignInServices();

const lookUp = (entityId: string) => service.admin('GET', `/admin/customers/${entityId}`);
const isErased = async (entityId: string) => (await identitiesOf(service).countBy({ entityId })) === 0;

describe('linking a browser to a user', () => {
  /** A new browser, which has a new customer. */
  const newBrowser = async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    return { browser, entityId: entity_id as string, headers: { ...FROM_PAGE, cookie: browser.cookie as string } };
  };
  const linked = (sub: string, headers: object, at = service) => signInAs(sub, LINK, { ...headers }, at);

  it('gives the browser’s customer to a user without one, and the entity_id stays the same', async () => {
    const { entityId, headers } = await newBrowser();
    const sub = newUser();
    expect((await linked(sub, headers)).body.entity_id).toBe(entityId);
    expect((await signInAs(sub)).body.entity_id).toBe(entityId);
    await linked(sub, headers);
    expect(linkedEvents()).toMatchObject([
      { subject: { id: entityId }, details: { linked: entityId }, organizationId: ACME },
    ]);
  });

  it('keeps the customer that the user already has, and records the browser’s customer with it once and for all', async () => {
    const sub = newUser();
    const customer = (await signInAs(sub)).body.entity_id;
    const { browser, entityId, headers } = await newBrowser();
    service.audit.length = 0;
    for (let time = 0; time < 3; time++) expect((await linked(sub, headers)).body.entity_id).toBe(customer);
    expect(linkedEvents()).toMatchObject([{ subject: { id: customer }, details: { linked: entityId } }]);
    expect((await lookUp(customer)).body).toMatchObject({ entity_id: customer, linked_ids: [entityId] });
    expect((await lookUp(entityId)).body).not.toHaveProperty('linked_ids');
    const next = (await browser.visit()).body.entity_id;
    expect([customer, entityId]).not.toContain(next);
    await linked(newUser(), { ...FROM_PAGE, cookie: browser.cookie });
    expect((await lookUp(customer)).body.linked_ids).toEqual([entityId]);
    const named = agentTokenBody({ entity_id: entityId });
    const agent = bearer(await issueAgentToken(service));
    expectInvalidRequest(await service.post(TOKEN, named, agent), /^entity_id: /);
  });

  it('leaves nothing to an agent that moves the browser’s customer meanwhile', async () => {
    const sub = newUser();
    await signInAs(sub);
    const { entityId, headers } = await newBrowser();
    const agent = bearer(await issueAgentToken(service));
    atNextTransaction(service, 'before', () => linked(sub, headers));
    const body = transferBody({ bearer_type: 'agent', customer_id: entityId, client_id: SIGN_IN });
    expectInvalidRequest(await service.post(TRANSFER, body, agent), /^customer_id: /);
    expect((await lookUp(entityId)).body).not.toHaveProperty('linked_ids');
  });

  it('ends everything of the browser’s customer if the user already has a customer, of which nothing ends', async () => {
    const sub = newUser();
    const user = await signInAs(sub, REMEMBER, FROM_PAGE);
    const { browser, entityId, headers } = await newBrowser();
    const token = (await browser.visit()).body.access_token;
    const ofSignIn = { client_id: SIGN_IN };
    const device = await remember(service, await moveOf(service, token, ofSignIn), { body: ofSignIn });
    const moved = await redeem(service, await transferToken(service, token, ofSignIn), ofSignIn);
    const code = await transferToken(service, token, ofSignIn);
    expect((await linked(sub, headers)).body.entity_id).toBe(user.body.entity_id);
    for (const { access_token } of [{ access_token: token }, device.body, moved.body])
      expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await redeem(service, code, ofSignIn));
    for (const cookie of [headers.cookie, cookieHeader(device)]) expect(await service.idOf(cookie)).not.toBe(entityId);
    expect(await infoStatus(service, user.body.access_token)).toBe(200);
    expect(await service.idOf(cookieHeader(user))).toBe(user.body.entity_id);
  });

  it('shows the operator the first 200 of the customers that are linked to one', async () => {
    const sub = newUser();
    const customer = (await signInAs(sub)).body.entity_id;
    const { entityId, headers } = await newBrowser();
    await linked(sub, headers);
    const row = await identitiesOf(service).findOneByOrFail({ entityId });
    const later = () => `f${randomUUID().slice(1)}`;
    await identitiesOf(service).insert(Array.from({ length: 200 }, () => ({ ...row, entityId: later() })));
    const { linked_ids } = (await lookUp(customer)).body;
    expect([linked_ids.length, linked_ids[0]]).toEqual([200, entityId]);
    const statements = await statementsOf(service, () => lookUp(customer));
    expect(statements, 'all within the deadline of the request').toEqual(Array(3).fill('SELECT'));
  });

  it('happens only if the request asks for it', async () => {
    const { browser, headers, entityId } = await newBrowser();
    expect((await signInAs(newUser(), {}, headers)).body.entity_id).not.toBe(entityId);
    expectInvalidRequest(await signInAs(newUser(), { link: 'other' }, headers), /^link: /);
    expect((await browser.visit()).body.entity_id).toBe(entityId);
    expect(linkedEvents()).toEqual([]);
  });

  it('never gives the customer of one user to another user, or links it to another', async () => {
    const { headers, entityId } = await newBrowser();
    const [first, second, third] = [newUser(), newUser(), newUser()];
    const customerOfThird = (await signInAs(third)).body.entity_id;
    const ofFirst = await linked(first, headers);
    expect(ofFirst.body.entity_id).toBe(entityId);
    const signedIn = { ...FROM_PAGE, cookie: cookieHeader(ofFirst) };
    const customerOfSecond = (await linked(second, signedIn)).body.entity_id;
    expect(customerOfSecond).not.toBe(entityId);
    expect((await linked(third, signedIn)).body.entity_id).toBe(customerOfThird);
    expect((await lookUp(customerOfThird)).body).not.toHaveProperty('linked_ids');
    expect((await linked(first, signedIn)).body.entity_id).toBe(entityId);
    expect(await infoStatus(service, ofFirst.body.access_token)).toBe(200);

    const { headers: ofFourth, entityId: linkedId } = await newBrowser();
    await linked(third, ofFourth);
    expect((await linked(newUser(), ofFourth)).body.entity_id, 'a customer that is linked').not.toBe(linkedId);
    expect((await lookUp(customerOfThird)).body.linked_ids).toEqual([linkedId]);
  });

  it(`gives the customer to one of ${REQUESTS_PER_RACE} users who sign in at the same time`, async () => {
    for (let round = 0; round < 2; round++) {
      const { headers, entityId } = await newBrowser();
      const known = await times(REQUESTS_PER_RACE / 2, async () => {
        const sub = newUser();
        await signInAs(sub);
        return sub;
      });
      const users = [...known, ...Array.from({ length: REQUESTS_PER_RACE / 2 }, newUser)];
      service.audit.length = 0;
      other.audit.length = 0;
      const responses = await times(REQUESTS_PER_RACE, (index) =>
        linked(users[index] as string, headers, index % 2 ? service : other),
      );
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(REQUESTS_PER_RACE);
      const { hasUser, linkedTo } = await identitiesOf(service).findOneByOrFail({ entityId });
      expect(hasUser).toBe(linkedTo === null);
      const events = [...service.audit, ...other.audit].filter(({ event }) => event === 'identity.linked');
      expect(events).toHaveLength(1);
    }
  });

  it('of two browsers at the same time keeps the customer of one and links the other to it', async () => {
    const [one, two] = [await newBrowser(), await newBrowser()];
    const sub = newUser();
    await Promise.all([linked(sub, one.headers), linked(sub, two.headers, other)]);
    const customer = (await signInAs(sub)).body.entity_id;
    expect([one.entityId, two.entityId]).toContain(customer);
    await linked(sub, one.headers);
    await linked(sub, two.headers);
    expect((await lookUp(customer)).body.linked_ids).toEqual([customer === one.entityId ? two.entityId : one.entityId]);
  });

  it('requires an Origin, which must be one of the client’s', async () => {
    const { browser, headers, entityId } = await newBrowser();
    const { cookie } = headers;
    expectInvalidRequest(await linked(newUser(), { cookie }), 'remember: needs an Origin');
    for (const origin of [RIVAL_ORIGIN, 'null', 'https://evil.example'])
      expectInvalidRequest(await linked(newUser(), { cookie, origin }), "Origin: not one of the client's");
    expect((await browser.visit()).body.entity_id).toBe(entityId);
  });

  it('gets an error in an organization that does not allow it', async () => {
    const parameters = { ...LINK, organization_id: RIVAL, client_id: RIVAL_SIGN_IN };
    const response = await signIn(service, await assertRival({}), parameters, { origin: RIVAL_ORIGIN });
    expectError(response, { status: 400, error: 'unauthorized_client', hint: 'link: not for this organization' });
  });

  it('ends when the browser’s customer or the user’s customer is erased', async () => {
    const sub = newUser();
    const customer = (await signInAs(sub)).body.entity_id;
    const [one, two] = [await newBrowser(), await newBrowser()];
    for (const { headers } of [one, two]) await linked(sub, headers);
    await service.erase(one.entityId);
    expect((await lookUp(customer)).body.linked_ids).toEqual([two.entityId]);
    await service.erase(customer);
    expect(await identitiesOf(service).countBy({ linkedTo: customer })).toBe(0);
    expect((await linked(newUser(), two.headers)).body.entity_id).not.toBe(two.entityId);
  });

  it('keeps the customer for the user after the browser has been idle for two years', async () => {
    const { headers, entityId } = await newBrowser();
    const idle = await newBrowser();
    const sub = newUser();
    await linked(sub, headers);
    service.passDays(800);
    await purge(service);
    expect(await isErased(idle.entityId)).toBe(true);
    expect(await isErased(entityId)).toBe(false);
    expect((await signInAs(sub)).body.entity_id).toBe(entityId);
  });

  it('during a purge gives no visitor to a user whose browser has just become idle', async () => {
    const { headers, entityId } = await newBrowser();
    const sub = newUser();
    let signedIn: TestResponse | undefined;
    const participants = service.application.get(CustomerDataParticipants);
    const mustRetain = participants.mustRetain.bind(participants);
    vi.spyOn(participants, 'mustRetain').mockImplementationOnce(async (ids) => {
      expect(ids).toContain(entityId);
      signedIn = await linked(sub, headers);
      return mustRetain(ids);
    });
    service.passDays(733);
    await purge(service);
    vi.restoreAllMocks();
    expect(await isErased(entityId)).toBe(true);
    expect(signedIn?.status).toBe(200);
    const { entity_id, access_token } = (signedIn as TestResponse).body;
    expect(entity_id).not.toBe(entityId);
    expect((await signInAs(sub)).body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, access_token)).toBe(200);
  });
});

describe('a user of the JWT bearer grant', () => {
  it('costs one INSERT and one SELECT when it is already known', async () => {
    const sub = newUser();
    await signInAs(sub);
    expect(await statementsOf(service, () => signInAs(sub))).toEqual(['INSERT', 'SELECT']);
  });

  it('with an assertion from before the end of all sessions signs in to the same customer', async () => {
    const sub = newUser();
    const { entity_id, access_token } = (await signInAs(sub)).body;
    const assertion = await assert({ sub });
    const ended = await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id, { browsers: true });
    expect(ended.status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(401);
    const { body } = await signIn(service, assertion, REMEMBER, FROM_PAGE);
    expect(body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, body.access_token)).toBe(200);
  });
});

it('the erasure of a user’s customer also takes the customer from a user who was linked during the erasure', async () => {
  const browser = new TestBrowser(service);
  const { entity_id } = (await browser.visit()).body;
  const sub = newUser();
  let linked: TestResponse | undefined;
  atNextTransaction(service, 'before', async () => {
    linked = await signInAs(sub, LINK, { ...FROM_PAGE, cookie: browser.cookie }, other);
  });
  expect((await service.erase(entity_id)).status).toBe(200);
  expect(linked?.body.entity_id).toBe(entity_id);
  expect(await infoStatus(service, linked?.body.access_token)).toBe(401);
  expect(await service.rowsOf(CustomerKey).countBy({ entityId: entity_id })).toBe(0);
  const after = (await signInAs(sub)).body;
  expect(after.entity_id).not.toBe(entity_id);
  expect(await infoStatus(service, after.access_token)).toBe(200);
});
