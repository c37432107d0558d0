import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { REQUESTS_PER_RACE } from '../../../packages/conformance-kit/src/race.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { OrganizationUser } from '../../../src/organization-user/organization-user.entity.js';
import { PUBLIC_SIGN_IN, RIVAL_SIGN_IN, signIn } from '../../support/assertion-issuer.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { expectError, expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import {
  assert,
  assertRival,
  erase,
  expectInvalidGrantWithoutCustomer,
  FROM_PAGE,
  LINK,
  linkedEvents,
  lookUp,
  newUser,
  other,
  rowsOf,
  service,
  signInAs,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { ACME, RIVAL, RIVAL_ORIGIN } from '../../support/test-registry.js';

const DAY_SECONDS = 86_400;

startSignInServices();

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
    service.audit.length = 0;
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
    const users = rowsOf(OrganizationUser);
    const row = await users.findOneByOrFail({ entityId });
    const linkedAt = new Date(row.linkedAt.getTime() + 1_000);
    await users.insert(Array.from({ length: 200 }, () => ({ ...row, entityId: randomUUID(), linkedAt })));
    const { linked_ids } = (await lookUp(customer)).body;
    expect([linked_ids.length, linked_ids[0]]).toEqual([200, entityId]);
  });

  it('happens only if the request asks for it', async () => {
    const { headers, entityId } = await newBrowser();
    expect((await signInAs(newUser(), {}, headers)).body.entity_id).not.toBe(entityId);
    expectInvalidRequest(await signInAs(newUser(), { link: 'other' }, headers), /^link: /);
    expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
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
  });

  it('never gives a customer that is linked to one user to another user', async () => {
    const { headers, entityId } = await newBrowser();
    const [first, second] = [newUser(), newUser()];
    const customer = (await signInAs(first)).body.entity_id;
    await linked(first, headers);
    expect((await linked(second, headers)).body.entity_id).not.toBe(entityId);
    expect((await lookUp(customer)).body.linked_ids).toEqual([entityId]);
  });

  it(`gives the customer to one of ${REQUESTS_PER_RACE} users who sign in at the same time`, async () => {
    for (let round = 0; round < 3; round++) {
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
      expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(1);
      const events = [...service.audit, ...other.audit].filter(({ event }) => event === 'identity.linked');
      expect(events).toHaveLength(1);
    }
  });

  it(`happens once when one user signs in ${REQUESTS_PER_RACE} times at the same time`, async () => {
    const { headers, entityId } = await newBrowser();
    const sub = newUser();
    service.audit.length = 0;
    const responses = await times(REQUESTS_PER_RACE, () => linked(sub, headers));
    expect(new Set(responses.map(({ body }) => body.entity_id))).toEqual(new Set([entityId]));
    expect(linkedEvents()).toHaveLength(1);
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

  it.each<[string, () => Promise<object>]>([
    ['no cookies', async () => ({})],
    ['the id without its secret', async () => ({ cookie: `__svc_cid=${(await newBrowser()).entityId}` })],
    [
      'an id with another’s secret',
      async () => {
        const [one, two] = [await newBrowser(), await newBrowser()];
        return { cookie: two.headers.cookie.replace(two.entityId, one.entityId) };
      },
    ],
    [
      'a pair inside the value of another cookie',
      async () => ({ cookie: `theme=dark ${(await newBrowser()).headers.cookie.replace('; ', ' ')}` }),
    ],
    [
      'a customer of another organization',
      async () => {
        const browser = new TestBrowser(service);
        await browser.visit({ organization_id: RIVAL, client_id: PUBLIC_SIGN_IN });
        return { cookie: browser.cookie };
      },
    ],
    [
      'a customer that was erased',
      async () => {
        const { headers, entityId } = await newBrowser();
        await erase(entityId);
        return headers;
      },
    ],
  ])('with %s links nothing', async (_, headers) => {
    const before = await rowsOf(OrganizationUser).count();
    service.audit.length = 0;
    expect((await linked(newUser(), { ...FROM_PAGE, ...(await headers()) })).status).toBe(200);
    expect(linkedEvents()).toEqual([]);
    expect(await rowsOf(OrganizationUser).count()).toBe(before + 1);
  });

  it('requires an Origin, which must be one of the client’s', async () => {
    const { headers, entityId } = await newBrowser();
    const { cookie } = headers;
    expectInvalidRequest(await linked(newUser(), { cookie }), 'remember: needs an Origin');
    for (const origin of [RIVAL_ORIGIN, 'null', 'https://evil.example'])
      expectInvalidRequest(await linked(newUser(), { cookie, origin }), "Origin: not one of the client's");
    expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
  });

  it('does not happen with a used assertion', async () => {
    const assertion = await assert({ sub: newUser() });
    await signIn(service, assertion);
    const { headers, entityId } = await newBrowser();
    await expectInvalidGrantWithoutCustomer(() => signIn(service, assertion, LINK, headers));
    expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
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
    await erase(one.entityId);
    expect((await lookUp(customer)).body.linked_ids).toEqual([two.entityId]);
    await erase(customer);
    expect(await rowsOf(OrganizationUser).countBy({ customerId: customer })).toBe(0);
    expect((await two.browser.visit()).body.entity_id).toBe(two.entityId);
  });

  it('leads to a new customer after the browser’s customer was erased', async () => {
    const { browser, headers, entityId } = await newBrowser();
    const sub = newUser();
    await linked(sub, headers);
    await erase(entityId);
    const again = (await linked(sub, headers)).body.entity_id;
    expect(again).not.toBe(entityId);
    expect((await browser.visit()).body.entity_id).not.toBe(entityId);
  });

  it('keeps the customer for the user after the browser has been idle for two years', async () => {
    const { headers, entityId } = await newBrowser();
    const idle = await newBrowser();
    const sub = newUser();
    await linked(sub, headers);
    service.clock.advance({ seconds: 800 * DAY_SECONDS });
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
      service.clock.advance({ seconds: 731 * DAY_SECONDS }); // the last day on which the browser leads to the customer
      expect((await linked(sub, headers)).body.entity_id).toBe(entityId);
      service.clock.advance({ seconds: 2 * DAY_SECONDS });
      return retained;
    });
    service.clock.advance({ seconds: 733 * DAY_SECONDS });
    await purge(service);
    vi.restoreAllMocks();
    expect(await isErased(idle.entityId)).toBe(true);
    expect(await isErased(entityId)).toBe(false);
    expect((await signInAs(sub)).body.entity_id).toBe(entityId);
  });
});
