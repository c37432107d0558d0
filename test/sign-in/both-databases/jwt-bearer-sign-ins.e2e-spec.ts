import { ServiceUnavailableException } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { REQUESTS_PER_RACE } from '../../../packages/conformance-kit/src/race.js';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { CustomerKey } from '../../../src/customer/customer-key.entity.js';
import { Ended } from '../../../src/feed/ended.entity.js';
import { Browser } from '../../../src/session/browser.entity.js';
import { Browsers } from '../../../src/session/browsers.js';
import { Session } from '../../../src/session/session.entity.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { JWT_BEARER, RIVAL_SIGN_IN, registryWithSignIn, SIGN_IN, signIn } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction } from '../../support/dying-transactions.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import {
  expectError,
  expectInvalidGrant,
  expectInvalidRequest,
  expectLimited,
  expectUnavailable,
} from '../../support/expect-error.js';
import { browserIdOf, browserOf, identitiesOf, secretOf, sessionsOfBrowser } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { moveOf, remember } from '../../support/remember.js';
import {
  acme,
  assert,
  FROM_PAGE,
  LINK,
  linkedEvents,
  newUser,
  other,
  REMEMBER,
  RIVAL_SIGN_IN_DAYS,
  service,
  signInAs,
  signInRival,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { expectKeysOnly } from '../../support/statement-plans.js';
import { delaySelects, statementsOf } from '../../support/statements.js';
import { ACME, ACME_ORIGIN, RIVAL, RIVAL_ORIGIN } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { infoStatus } from '../../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, type UsedService } from '../../support/use-service.js';

const DEFAULT_SIGN_IN_DAYS = 30;
const ROUND_COUNT = 3;
const OF_SIGN_IN = { client_id: SIGN_IN };
const AT_RIVAL = { client_id: RIVAL_SIGN_IN, organization_id: RIVAL };
const SALES = `/v2/customer/${ACME}/sales/token`;
const FORGET = '/v2/customer/forget';

startSignInServices();

const fromPage = (cookie?: string) => ({ ...FROM_PAGE, ...(cookie !== undefined && { cookie }) });
/** A browser with a customer of its own. */
const newVisitor = async () => {
  const response = await service.visit();
  const { entity_id: entityId, access_token: token } = response.body;
  return { entityId: entityId as string, token: token as string, cookie: cookieHeader(response) };
};
const signedIn = async (sub: string, cookie?: string, more: object = REMEMBER, at = service) => {
  const response = await signInAs(sub, more, fromPage(cookie), at);
  expect(response.status).toBe(200);
  const { entity_id: entityId, access_token: token } = response.body;
  return { entityId: entityId as string, token: token as string, cookie: cookieHeader(response), response };
};
/** A user that has a customer. */
async function knownUser(): Promise<string> {
  const sub = newUser();
  await signedIn(sub);
  return sub;
}
const endAsOperator = (entityId: string, body?: object) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, body);
const browsersOf = async (entityId: string): Promise<{ id: string }[]> =>
  (await service.admin('GET', `/admin/customers/${entityId}`)).body.browsers;
const browserCount = () => service.rowsOf(Browser).count();
const moved = async (token: string, cookie?: string) =>
  remember(service, await moveOf(service, token, OF_SIGN_IN), { cookie, body: OF_SIGN_IN });
const forget = (cookie: string) =>
  service.post(FORGET, { client_id: SIGN_IN, organization_id: ACME }, { cookie, origin: ACME_ORIGIN });

/** A browser that leads to 25 customers in each of 12 organizations. */
async function collectingBrowser(): Promise<string> {
  const response = await service.visit();
  const [own] = (await sessionsOfBrowser(service, response)) as [Session];
  const organizationIds = Array.from({ length: 12 }, () => crypto.randomUUID());
  const scopes = organizationIds.flatMap((organizationId) =>
    Array.from({ length: 25 }, (_, group) => ({ entityId: crypto.randomUUID(), organizationId, groupId: `${group}` })),
  );
  const customer = await identitiesOf(service).findOneByOrFail({ entityId: own.customerId });
  await identitiesOf(service).insert(scopes.map((scope) => ({ ...customer, ...scope })));
  const sessions = scopes.map(({ entityId, ...scope }) => ({ ...own, id: entityId, customerId: entityId, ...scope }));
  await service.rowsOf(Session).insert(sessions);
  return cookieHeader(response);
}

describe('protocol §5.6: a sign-in with remember=browser', () => {
  it('gives a new pair that leads to the customer of the user, also in another process, and adds nothing to the earlier pair', async () => {
    const sub = newUser();
    const customer = (await signInAs(sub)).body.entity_id;
    const visitor = await newVisitor();
    const { response, entityId, cookie } = await signedIn(sub, visitor.cookie);
    expect(entityId).toBe(customer);
    expect(secretOf(response)).not.toBe(visitor.cookie.split('cst=')[1]);
    expect(await service.idOf(cookie)).toBe(customer);
    expect(await other.idOf(cookie)).toBe(customer);
    expect(await service.idOf(visitor.cookie)).toBe(visitor.entityId);
    const next = await signedIn(newUser(), cookie);
    expect(next.entityId, 'another user replaces the user before').not.toBe(customer);
    expect(await service.idOf(next.cookie)).toBe(next.entityId);
    expect(await service.idOf(cookie)).toBe(customer);
  });

  it('leads to the customers of other organizations, and to no other customer of this organization', async () => {
    const visitor = await newVisitor();
    const [atRival, inSales] = [
      await service.idOf(visitor.cookie, AT_RIVAL),
      await service.idOf(visitor.cookie, {}, SALES),
    ];
    const { cookie } = await signedIn(newUser(), visitor.cookie);
    expect(await service.idOf(cookie, AT_RIVAL)).toBe(atRival);
    expect(await service.idOf(cookie, {}, SALES)).not.toBe(inSales);
    expect(await service.idOf(visitor.cookie, {}, SALES)).toBe(inSales);
  });

  it('in a browser that is signed in renews its pair, and makes no browser', async () => {
    const sub = newUser();
    const first = await signedIn(sub);
    const before = await browserCount();
    const second = await signedIn(sub, first.cookie);
    expect(secretOf(second.response)).toBe(secretOf(first.response));
    expect(second.response.cookies[0]).toContain('Max-Age=63072000');
    expect(await browserCount()).toBe(before);
    const [browser, ...others] = await browsersOf(first.entityId);
    expect(others).toEqual([]);
    const details = { browser: browser?.id, sign_in: claimsOf(first.token).sid };
    expect(
      service.audit.filter(({ event }) => event === 'browser.linked'),
      'of the first sign-in only',
    ).toMatchObject([{ subject: { id: first.entityId }, organizationId: ACME, details }]);
  });

  it('writes one browser and at most 21 sessions, however many the earlier browser has; a renewal writes none', async () => {
    const cookie = await collectingBrowser();
    const rowCounts = async () => [await browserCount(), await service.rowsOf(Session).count()];
    const [browsers = 0, sessions = 0] = await rowCounts();
    const sub = newUser();
    const first = await signedIn(sub, cookie);
    expect(await rowCounts()).toEqual([browsers + 1, sessions + 21]);
    await signedIn(sub, first.cookie);
    expect(await rowCounts()).toEqual([browsers + 1, sessions + 21]);
  });

  it('in a browser to which the user’s customer was moved makes a browser, which outlives the transfer', async () => {
    const sub = newUser();
    const first = await signedIn(sub);
    const device = await moved(first.token);
    const { cookie, entityId } = await signedIn(sub, cookieHeader(device));
    await service.send('DELETE', TOKEN, bearer(first.token));
    expect(await service.idOf(cookieHeader(device))).not.toBe(entityId);
    expect(await service.idOf(cookie)).toBe(entityId);
  });

  it.each([
    ['link and without remember', { link: 'browser' }, 'link: only with remember=browser'],
    ['another value', { remember: 'refresh_token' }, 'remember: must be one of the following values: browser'],
  ])('with %s gets an error, no cookie and no customer, and the assertion stays usable', async (_, more, hint) => {
    const assertion = await assert({ sub: newUser() });
    const before = [await identitiesOf(service).count(), await browserCount()];
    expectError(await signIn(service, assertion, more, FROM_PAGE), { status: 400, error: 'invalid_request', hint });
    expect([await identitiesOf(service).count(), await browserCount()]).toEqual(before);
    expect((await signIn(service, assertion, REMEMBER, FROM_PAGE)).status).toBe(200);
  });

  it('is for clients whose entry has the value, and the assertion of another client stays usable', async () => {
    const client_id = `client-${crypto.randomUUID()}`;
    const client = { client_id, name: 'Own', client_type: 'web', organization_id: ACME, origins: [ACME_ORIGIN] };
    await service.admin('POST', '/admin/clients', { ...client, grant_types: [JWT_BEARER] });
    const assertion = await assert({ sub: newUser() });
    const response = await signIn(service, assertion, { ...REMEMBER, client_id }, FROM_PAGE);
    expectError(response, {
      status: 400,
      error: 'unauthorized_client',
      hint: 'remember: browser is not for this client',
    });
    expect(response.cookies).toEqual([]);
    expect((await signIn(service, assertion, { client_id })).status).toBe(200);
  });

  it('counts against the limit of the client only, and 429 leaves the assertion usable', async () => {
    const registry = registryWithSignIn({ [ACME]: acme.settings() });
    const limited = await serviceOfTest({ registry, environment: { RATE_LIMIT: 'identities=1/60,tokens=3/60' } });
    beginWindow(limited);
    const assertions = await times(4, () => acme.assert(limited.clock.now(), { sub: newUser() }));
    const send = (assertion: string) => signIn(limited, assertion, REMEMBER, FROM_PAGE);
    for (const assertion of assertions.slice(0, 3)) expect((await send(assertion)).status).toBe(200);
    const last = assertions[3] as string;
    const response = await send(last);
    expect({ status: response.status, cookies: response.cookies }).toEqual({ status: 429, cookies: [] });
    limited.clock.advance({ seconds: 60 });
    expect((await send(last)).status).toBe(200);
  });

  it('with a used assertion sets no cookies, and links nothing', async () => {
    const { cookie, entityId } = await newVisitor();
    const assertion = await assert({ sub: newUser() });
    await signIn(service, assertion, REMEMBER, FROM_PAGE);
    expectInvalidGrant(await signIn(service, assertion, LINK, fromPage(cookie)));
    expect(await service.idOf(cookie)).toBe(entityId);
    expect(linkedEvents()).toEqual([]);
  });

  it('costs a returning customer one SELECT by keys and no write', async () => {
    const browser = new TestBrowser(service);
    browser.cookie = (await signedIn(newUser())).cookie;
    expect(await statementsOf(service, () => browser.visit())).toEqual(['SELECT']);
    if (onMariadb) await expectKeysOnly(service, browser);
  });
});

it('protocol §4.7: a new user without remember, beyond the limit of new customers, gets 429, which leaves the assertion usable once', async () => {
  const registry = registryWithSignIn({ [ACME]: acme.settings() });
  const limited = await serviceOfTest({ registry, environment: { RATE_LIMIT: 'identities=1/60' } });
  beginWindow(limited);
  const [first, second] = await times(2, () => acme.assert(limited.clock.now(), { sub: newUser() }));
  expect((await signIn(limited, first as string)).status).toBe(200);
  const send = () => signIn(limited, second as string);
  for (let round = 0; round < 2; round++) expectLimited(await send());
  limited.clock.advance({ seconds: 60 });
  expect((await send()).status).toBe(200);
  expectInvalidGrant(await send());
});

it('protocol §4.7: a user whose customer is being erased gets 503, which leaves the assertion usable once', async () => {
  const sub = newUser();
  const { entity_id: entityId } = (await signIn(service, await assert({ sub }))).body;
  const setErased = (erasedAt: Date | null) => identitiesOf(service).update({ entityId }, { erasedAt });
  await setErased(new Date(service.clock.now()));
  const assertion = await assert({ sub });
  for (let round = 0; round < 2; round++) expectUnavailable(await signIn(service, assertion));
  await setErased(null);
  expect((await signIn(service, assertion)).body.entity_id).toBe(entityId);
  expectInvalidGrant(await signIn(service, assertion));
});

describe('protocol §4.7: a new user who links the browser', () => {
  it('ends the secrets of the browsers that led to its customer and to no other one, as end_sessions does', async () => {
    const visitor = await newVisitor();
    const device = await moved(visitor.token);
    const copy = await signInRival({ sub: newUser() }, REMEMBER, { cookie: visitor.cookie, origin: RIVAL_ORIGIN });
    expect(await service.idOf(cookieHeader(copy))).toBe(visitor.entityId);
    const atRival = await service.idOf(visitor.cookie, AT_RIVAL);
    await signedIn(newUser(), visitor.cookie, LINK);
    const hasSecret = (response: TestResponse) =>
      service.rowsOf(Browser).existsBy({ browserId: browserIdOf(secretOf(response)) });
    expect([await hasSecret(device), await hasSecret(copy)]).toEqual([false, true]);
    for (const response of [device, copy])
      expect(await service.idOf(cookieHeader(response))).not.toBe(visitor.entityId);
    expect(await service.idOf(cookieHeader(copy), AT_RIVAL)).toBe(copy.body.entity_id);
    expect(await service.idOf(visitor.cookie, AT_RIVAL)).toBe(atRival);
    const sessions = await service.rowsOf(Session).findBy({ customerId: visitor.entityId });
    expect(sessions.map(({ kind }) => kind)).toEqual(['sign_in']);
    const { number } = await service.rowsOf(Ended).findOneByOrFail({ kind: 'subject', value: visitor.entityId });
    expect(Number(number), 'for the feed').toBeGreaterThan(claimsOf(visitor.token).gen as number);
  });

  it('gets 503 if the transaction fails, and the visitor keeps its pair and its token', async () => {
    const visitor = await newVisitor();
    const deletion = vi.spyOn(service.application.get(Browsers), 'deleteUnusedIn');
    deletion.mockRejectedValueOnce(new ServiceUnavailableException('the database is unavailable'));
    const sub = newUser();
    const response = await signInAs(sub, LINK, fromPage(visitor.cookie));
    expect({ status: response.status, cookies: response.cookies }).toEqual({ status: 503, cookies: [] });
    expect(await infoStatus(service, visitor.token)).toBe(200);
    expect(await service.idOf(visitor.cookie)).toBe(visitor.entityId);
    expect((await signedIn(sub, visitor.cookie, LINK)).entityId).toBe(visitor.entityId);
    expect(await infoStatus(service, visitor.token)).toBe(401);
  });

  const ofGroup = async () => {
    const response = await service.visit(undefined, {}, SALES);
    return { cookie: cookieHeader(response), entityId: response.body.entity_id as string };
  };
  const visitorAfter = async (change: (visitor: Awaited<ReturnType<typeof newVisitor>>) => Promise<unknown>) => {
    const visitor = await newVisitor();
    const changed = await change(visitor);
    return typeof changed === 'string' ? { ...visitor, cookie: changed } : visitor;
  };

  it.each<[string, () => Promise<{ cookie: string; entityId: string }>]>([
    ['whose id comes without its secret', () => visitorAfter(async ({ entityId }) => `__svc_cid=${entityId}`)],
    [
      'whose id comes with another secret',
      () =>
        visitorAfter(async ({ cookie }) =>
          [cookie, (await newVisitor()).cookie].map((each, at) => each.split('; ')[at]).join('; '),
        ),
    ],
    ['of another organization', () => visitorAfter(async () => cookieHeader(await service.visit(undefined, AT_RIVAL)))],
    ['that was erased', () => visitorAfter(({ entityId }) => service.erase(entityId))],
    ['that was moved to the browser', () => visitorAfter(async ({ token }) => cookieHeader(await moved(token)))],
    ['of a group', ofGroup],
    ['that the browser has forgotten', () => visitorAfter(({ cookie }) => forget(cookie))],
    [
      'whose sessions have ended with those of its browsers',
      () => visitorAfter(({ entityId }) => endAsOperator(entityId, { browsers: true })),
    ],
  ])('does not get a customer %s', async (_, browserWith) => {
    const { cookie, entityId } = await browserWith();
    const before = await service.rowsOf(CustomerKey).count();
    const user = await signedIn(newUser(), cookie, LINK);
    expect(user.entityId).not.toBe(entityId);
    expect(await service.idOf(user.cookie)).toBe(user.entityId);
    expect(linkedEvents()).toEqual([]);
    expect(await service.rowsOf(CustomerKey).count()).toBe(before + 1);
  });

  it.each<[string, (cookie: string, entityId: string) => Promise<{ status: number }>]>([
    ['the browser is forgotten', (cookie) => forget(cookie)],
    ['the sessions end with those of its browsers', (_, entityId) => endAsOperator(entityId, { browsers: true })],
    ['the customer is erased', (_, entityId) => service.erase(entityId)],
  ])(
    'does not get a customer to which the browser leads no more because %s after it was recognized',
    async (_, end) => {
      const visitor = await newVisitor();
      await service.idOf(visitor.cookie, AT_RIVAL);
      atNextTransaction(other, 'before', async () =>
        expect((await end(visitor.cookie, visitor.entityId)).status).toBe(200),
      );
      const user = await signedIn(newUser(), visitor.cookie, LINK, other);
      expect(user.entityId).not.toBe(visitor.entityId);
      expect(await service.idOf(user.cookie)).toBe(user.entityId);
    },
  );
});

describe('protocol §4.7: sign_in_days', () => {
  it(`end ${DEFAULT_SIGN_IN_DAYS} days after the day of the last sign-in, also in a browser that is used each day`, async () => {
    const sub = newUser();
    const { cookie, entityId } = await signedIn(sub);
    service.passDays(20);
    await signedIn(sub, cookie);
    for (let day = 1; day <= DEFAULT_SIGN_IN_DAYS; day++) {
      service.passDays(1);
      expect(await service.idOf(cookie)).toBe(entityId);
    }
    expect(await browsersOf(entityId)).toHaveLength(1);
    service.passDays(1);
    expect(await browsersOf(entityId)).toEqual([]);
    const next = await service.visit(cookie);
    expect(next.body.entity_id).not.toBe(entityId);
    expect(await service.idOf(cookie)).toBe(next.body.entity_id);
    expect((await signedIn(sub, cookie)).entityId).toBe(entityId);
  });

  it('are those of the organization’s settings', async () => {
    const sub = newUser();
    const page = { origin: RIVAL_ORIGIN };
    const response = await signInRival({ sub }, REMEMBER, page);
    const [cookie, entityId] = [cookieHeader(response), response.body.entity_id];
    service.passDays(RIVAL_SIGN_IN_DAYS);
    expect(await service.idOf(cookie, AT_RIVAL)).toBe(entityId);
    expect(await browsersOf(entityId)).toHaveLength(1);
    service.passDays(1);
    expect(await browsersOf(entityId)).toEqual([]);
    expect(await service.idOf(cookie, AT_RIVAL)).not.toBe(entityId);
  });

  it('count for a copy of the session from the sign-in, not from the copy', async () => {
    const user = await signedIn(newUser());
    service.passDays(20);
    const response = await signInRival({ sub: newUser() }, REMEMBER, { cookie: user.cookie, origin: RIVAL_ORIGIN });
    const copy = cookieHeader(response);
    service.passDays(10);
    expect(await service.idOf(copy)).toBe(user.entityId);
    service.passDays(1);
    expect(await service.idOf(copy)).not.toBe(user.entityId);
  });

  it('end a sign-in for a new browser too, which gets no copy of it', async () => {
    const user = await signedIn(newUser());
    service.passDays(DEFAULT_SIGN_IN_DAYS + 1);
    const response = await signInRival({ sub: newUser() }, REMEMBER, { cookie: user.cookie, origin: RIVAL_ORIGIN });
    expect(await service.rowsOf(Session).countBy({ customerId: user.entityId })).toBe(1);
    expect(await service.idOf(cookieHeader(response))).not.toBe(user.entityId);
  });

  it('count for a browser by transfer of a user’s customer from the redemption, and not for one of another customer', async () => {
    const sub = newUser();
    const first = await signedIn(sub);
    service.passDays(20);
    const [user, visitor] = [await signedIn(sub, first.cookie), await newVisitor()];
    const [ofUser, ofVisitor] = [cookieHeader(await moved(user.token)), cookieHeader(await moved(visitor.token))];
    service.passDays(DEFAULT_SIGN_IN_DAYS);
    expect(await service.idOf(ofUser)).toBe(user.entityId);
    service.passDays(1);
    expect(await service.idOf(ofVisitor)).toBe(visitor.entityId);
    const next = await service.visit(ofUser);
    expect(next.body.entity_id).not.toBe(user.entityId);
    expect(await service.idOf(ofUser)).toBe(next.body.entity_id);
  });

  type Meanwhile = (after: UsedService, cookies: string[]) => Promise<unknown>;
  const nothing: Meanwhile = async () => undefined;
  const visit: Meanwhile = (after, cookies) => Promise.all(cookies.map((cookie) => after.visit(cookie)));
  it.each<[string, number, Meanwhile, number, boolean]>([
    ['raised, do not count before a visit', 30, nothing, 6, false],
    ['raised, count from the next visit', 30, visit, 6, true],
    ['lowered, do not count before the purge', 1, nothing, 5, true],
    ['lowered, count from the purge', 1, purge, 5, false],
  ])('if they are %s', async (_, later, meanwhile, days, leads) => {
    const registryWith = (sign_in_days: number) => registryWithSignIn({ [ACME]: acme.settings({ sign_in_days }) });
    const before = await serviceOfTest({ registry: registryWith(5) });
    const user = await signedIn(newUser(), undefined, REMEMBER, before);
    const device = await remember(before, await moveOf(before, user.token, OF_SIGN_IN), { body: OF_SIGN_IN });
    const after = await serviceOfTest({ registry: registryWith(later), database: before.database });
    const cookies = [user.cookie, cookieHeader(device)];
    after.passDays(3);
    await meanwhile(after, cookies);
    after.passDays(days - 3);
    for (const cookie of cookies) expect((await after.idOf(cookie)) === user.entityId).toBe(leads);
  });

  it.each([0, 732, 1.5, '30'])('are from 1 to 731: %j', async (sign_in_days) => {
    const grants = { [JWT_BEARER]: acme.settings({ sign_in_days }) };
    const response = await service.admin('POST', '/admin/organizations', {
      ...{ id: crypto.randomUUID(), name: 'Own', grants },
    });
    expectInvalidRequest(response, /sign_in_days/);
  });
});

it('protocol §4.14: end_sessions with browsers: true and the customer token of a user needs the pair of a sign-in, and not that of a transfer', async () => {
  const user = await signedIn(newUser());
  const device = await moved(user.token);
  const ends = (cookie?: string) => endSessions(service, user.token, { browsers: true }, fromPage(cookie));
  for (const cookie of [undefined, cookieHeader(device)]) expectInvalidRequest(await ends(cookie), /^browsers: needs/);
  expect((await ends(user.cookie)).status).toBe(200);
  expect(await service.idOf(user.cookie)).not.toBe(user.entityId);
});

describe('a sign-in at the same time as', () => {
  const expectSignedIn = async ({ body, cookies }: TestResponse) => {
    expect(await infoStatus(service, body.access_token)).toBe(200);
    expect(await service.idOf(cookieHeader({ cookies } as TestResponse))).toBe(body.entity_id);
  };

  it('others of the same new user from one browser gives each a pair and a token of one customer', async () => {
    for (let round = 0; round < ROUND_COUNT; round++) {
      const visitor = await newVisitor();
      const sub = newUser();
      const responses = await times(REQUESTS_PER_RACE, (index) =>
        signInAs(sub, LINK, fromPage(visitor.cookie), index % 2 ? service : other),
      );
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id))).toEqual(new Set([visitor.entityId]));
      for (const response of responses) await expectSignedIn(response);
      expect(await service.idOf(visitor.cookie)).not.toBe(visitor.entityId);
      const linked = [...service.audit, ...other.audit].filter(({ event }) => event === 'identity.linked');
      expect(linked.filter(({ subject }) => subject?.id === visitor.entityId)).toHaveLength(1);
    }
  });

  it('others of a signed-in user renews one pair', async () => {
    const sub = newUser();
    const { cookie, entityId } = await signedIn(sub);
    const responses = await times(REQUESTS_PER_RACE, (index) =>
      signInAs(sub, REMEMBER, fromPage(cookie), index % 2 ? service : other),
    );
    expect(new Set(responses.map(cookieHeader))).toEqual(new Set([cookie]));
    expect(await browsersOf(entityId)).toHaveLength(1);
  });

  it.each([{ browsers: true }, {}])(
    'end_sessions with %j leaves the token only if it leaves the pair',
    async (body) => {
      for (let round = 0; round < 2 * ROUND_COUNT; round++) {
        const sub = newUser();
        const first = await signedIn(sub);
        const [ended, response] = await Promise.all([
          endAsOperator(first.entityId, body),
          signInAs(sub, REMEMBER, FROM_PAGE, other),
        ]);
        expect([ended.status, response.status]).toEqual([200, 200]);
        const isValid = (await infoStatus(service, response.body.access_token)) === 200;
        const leads = (await service.idOf(cookieHeader(response))) === first.entityId;
        if ('browsers' in body) expect(leads).toBe(isValid);
        else expect(leads).toBe(true);
        expect((await service.idOf(first.cookie)) === first.entityId).toBe(!('browsers' in body));
      }
    },
  );

  it('`forget` of the signed-in browser leads nowhere or to the user, and the earlier pair never to another customer', async () => {
    for (let round = 0; round < 2 * ROUND_COUNT; round++) {
      const sub = newUser();
      const first = await signedIn(sub);
      const [forgotten, response] = await Promise.all([
        forget(first.cookie),
        signInAs(sub, REMEMBER, fromPage(first.cookie), other),
      ]);
      expect([forgotten.status, response.status]).toEqual([200, 200]);
      const isRenewed = secretOf(response) === secretOf(first.response);
      expect((await service.idOf(cookieHeader(response))) === first.entityId).toBe(!isRenewed);
    }
  });

  it('the end of its session by the operator leads to the customers of other organizations', async () => {
    const sub = newUser();
    const first = await signedIn(sub);
    const atRival = await service.idOf(first.cookie, AT_RIVAL);
    const { browserId } = await browserOf(service, first.response);
    const ended: number[] = [];
    atNextTransaction(other, 'before', async () => {
      const path = `/admin/customers/${first.entityId}/browsers/${browserId}`;
      ended.push((await service.admin('DELETE', path)).status);
    });
    const second = await signedIn(sub, first.cookie, REMEMBER, other);
    expect(ended).toEqual([200]);
    expect(secretOf(second.response)).not.toBe(secretOf(first.response));
    expect(await service.idOf(second.cookie, AT_RIVAL)).toBe(atRival);
  });

  it('the first visit of the browser in the organization gives each the pair of its own customer', async () => {
    for (let round = 0; round < 2 * ROUND_COUNT; round++) {
      const cookie = cookieHeader(await service.visit(undefined, AT_RIVAL));
      const [visited, response] = await Promise.all([
        service.visit(cookie),
        signInAs(newUser(), LINK, fromPage(cookie), other),
      ]);
      expect([visited.status, response.status]).toEqual([200, 200]);
      await expectSignedIn(response);
      const visitorId = visited.body.entity_id;
      const isLinked = visitorId === response.body.entity_id;
      expect((await service.idOf(cookieHeader(visited))) === visitorId).toBe(!isLinked);
    }
  });

  it.each([
    ['a new user', REMEMBER, async () => newUser()],
    ['a known user', REMEMBER, knownUser],
    ['a new user with link', LINK, async () => newUser()],
    ['a known user with link', LINK, knownUser],
  ])('the first visits of a day loses no customer of the browser: %s', async (_, more, userOf) => {
    if (!onMariadb) for (const process of [service, other]) delaySelects(process);
    for (let round = 0; round < ROUND_COUNT; round++) {
      const visitor = await newVisitor();
      const atRival = await service.idOf(visitor.cookie, AT_RIVAL);
      for (const process of [service, other]) process.passDays(1);
      const sub = await userOf();
      const [response, ...visits] = await Promise.all([
        signInAs(sub, more, fromPage(visitor.cookie), other),
        ...Array.from({ length: REQUESTS_PER_RACE }, (_, index) => (index % 2 ? service : other).visit(visitor.cookie)),
      ]);
      for (const { status } of [response, ...visits]) expect(status).toBe(200);
      await expectSignedIn(response);
      expect(await service.idOf(cookieHeader(response), AT_RIVAL)).toBe(atRival);
      const next = await service.idOf(visitor.cookie);
      expect(next === visitor.entityId).toBe(more === REMEMBER);
      const named = new Set(visits.map(({ body }) => body.entity_id));
      named.delete(visitor.entityId);
      expect([...named]).toEqual(named.size === 0 || next === visitor.entityId ? [] : [next]);
      for (const visited of visits) {
        const isOfNext = visited.body.entity_id === next;
        expect(await infoStatus(service, visited.body.access_token)).toBe(isOfNext ? 200 : 401);
        expect(await service.idOf(cookieHeader(visited))).toBe(next);
        expect(await service.idOf(cookieHeader(visited), AT_RIVAL)).toBe(atRival);
      }
    }
  });
});

describe('the settings of a client', () => {
  const registry = (grants: object) => ({ grants: { [JWT_BEARER]: grants } });
  it.each([{ remember: ['refresh_token'] }, { remember: 'browser' }, { issuer: 'https://login.example' }])(
    'are rejected: %j',
    async (grants) => {
      const client = { client_id: `client-${crypto.randomUUID()}`, name: 'Own', client_type: 'web' };
      const response = await service.admin('POST', '/admin/clients', {
        ...client,
        ...registry(grants),
      });
      expectInvalidRequest(response, /jwt-bearer/);
    },
  );

  it('are not those of an organization', async () => {
    const organization = { id: crypto.randomUUID(), name: 'Own', ...registry({ remember: ['browser'] }) };
    const response = await service.admin('POST', '/admin/organizations', organization);
    expectInvalidRequest(response, /jwt-bearer/);
  });
});
