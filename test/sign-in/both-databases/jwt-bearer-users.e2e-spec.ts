import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { REQUESTS_PER_RACE } from '../../../packages/conformance-kit/src/race.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { OrganizationUser } from '../../../src/organization-user/organization-user.entity.js';
import { RIVAL_SIGN_IN, signIn } from '../../support/assertion-issuer.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { atNextTransaction } from '../../support/dying-transactions.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectError, expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
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
import { infoStatus } from '../../support/transfers.js';
import { ADMIN_TOKEN } from '../../support/use-service.js';

startSignInServices();

const lookUp = (entityId: string) => service.admin('GET', `/admin/identities/${entityId}`);
const isErased = async (entityId: string) =>
  (await identitiesOf(service).findOneByOrFail({ entityId })).erasedAt !== null;

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

  it('keeps the customer that the user already has, and records the browser’s customer with it', async () => {
    const sub = newUser();
    const customer = (await signInAs(sub)).body.entity_id;
    const { browser, entityId, headers } = await newBrowser();
    service.audit.length = 0;
    for (let time = 0; time < 3; time++) expect((await linked(sub, headers)).body.entity_id).toBe(customer);
    expect(linkedEvents()).toMatchObject([{ subject: { id: customer }, details: { linked: entityId } }]);
    expect((await browser.visit()).body.entity_id).toBe(entityId);
    expect((await lookUp(customer)).body).toMatchObject({ entity_id: customer, linked_ids: [entityId] });
    expect((await lookUp(entityId)).body).not.toHaveProperty('linked_ids');
  });

  it('shows the operator the first 200 of the customers that are linked to one', async () => {
    const sub = newUser();
    const customer = (await signInAs(sub)).body.entity_id;
    const { entityId, headers } = await newBrowser();
    await linked(sub, headers);
    const users = service.rowsOf(OrganizationUser);
    const row = await users.findOneByOrFail({ entityId });
    const linkedAt = new Date(row.linkedAt.getTime() + 1_000);
    await users.insert(Array.from({ length: 200 }, () => ({ ...row, entityId: randomUUID(), linkedAt })));
    const { linked_ids } = (await lookUp(customer)).body;
    expect([linked_ids.length, linked_ids[0]]).toEqual([200, entityId]);
    const statements = await statementsOf(service, () => lookUp(customer));
    expect(statements, 'all within the deadline of the request').toEqual(Array(4).fill('SELECT'));
  });

  it('happens only if the request asks for it', async () => {
    const { headers, entityId } = await newBrowser();
    expect((await signInAs(newUser(), {}, headers)).body.entity_id).not.toBe(entityId);
    expectInvalidRequest(await signInAs(newUser(), { link: 'other' }, headers), /^link: /);
    expect(await service.rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
  });

  it('never gives the customer of one user to another user, or links it to another', async () => {
    const { headers, entityId } = await newBrowser();
    const [first, second, third] = [newUser(), newUser(), newUser()];
    const customerOfThird = (await signInAs(third)).body.entity_id;
    expect((await linked(first, headers)).body.entity_id).toBe(entityId);
    const customerOfSecond = (await linked(second, headers)).body.entity_id;
    expect(customerOfSecond).not.toBe(entityId);
    expect((await linked(third, headers)).body.entity_id).toBe(customerOfThird);
    expect((await lookUp(customerOfThird)).body).not.toHaveProperty('linked_ids');
    expect((await linked(first, headers)).body.entity_id).toBe(entityId);

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
      expect(await service.rowsOf(OrganizationUser).countBy({ entityId })).toBe(1);
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
    const { headers, entityId } = await newBrowser();
    const { cookie } = headers;
    expectInvalidRequest(await linked(newUser(), { cookie }), 'remember: needs an Origin');
    for (const origin of [RIVAL_ORIGIN, 'null', 'https://evil.example'])
      expectInvalidRequest(await linked(newUser(), { cookie, origin }), "Origin: not one of the client's");
    expect(await service.rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
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
    expect(await service.rowsOf(OrganizationUser).countBy({ customerId: customer })).toBe(0);
    expect((await two.browser.visit()).body.entity_id).toBe(two.entityId);
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

  it('during a purge retains the customer that is about to become idle, and the row of its user', async () => {
    const { headers, entityId } = await newBrowser();
    const idle = await newBrowser();
    const sub = newUser();
    const participants = service.application.get(CustomerDataParticipants);
    const mustRetain = participants.mustRetain.bind(participants);
    vi.spyOn(participants, 'mustRetain').mockImplementationOnce(async (ids) => {
      const retained = await mustRetain(ids);
      expect(ids).toContain(entityId);
      service.clock.reset();
      service.passDays(731); // the last day on which the browser leads to the customer
      expect((await linked(sub, headers)).body.entity_id).toBe(entityId);
      service.passDays(2);
      return retained;
    });
    service.passDays(733);
    await purge(service);
    vi.restoreAllMocks();
    expect(await isErased(idle.entityId)).toBe(true);
    expect(await isErased(entityId)).toBe(false);
    expect((await signInAs(sub)).body.entity_id).toBe(entityId);
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
  expect(await service.rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
  const after = (await signInAs(sub)).body;
  expect(after.entity_id).not.toBe(entity_id);
  expect(await infoStatus(service, after.access_token)).toBe(200);
});
