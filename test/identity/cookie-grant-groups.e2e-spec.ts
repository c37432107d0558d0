import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { Session } from '../../src/session/session.entity.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import {
  browserPartOf,
  cookieValue,
  expectNoCustomerCreated,
  identitiesOf,
  sessionsOfBrowser,
} from '../support/identities.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { delaySelects, statementsOf } from '../support/statements.js';
import {
  ACME,
  ACME_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  SHARED,
  UNKNOWN_CUSTOMER,
} from '../support/test-registry.js';
import type { TestResponse, TestService } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

/** An organization or group in which a browser has a customer of its own. */
interface CustomerSpace {
  organization: string;
  group?: string;
}

const A: CustomerSpace = { organization: ACME };
const B: CustomerSpace = { organization: RIVAL };
const G1: CustomerSpace = { organization: ACME, group: 'g1' };
const G2: CustomerSpace = { organization: ACME, group: 'g2' };
const SCOPES: CustomerSpace[] = [
  A,
  B,
  { organization: SHARED },
  G1,
  G2,
  { ...G1, group: 'G1' },
  { ...G1, organization: RIVAL },
];

const service = useService();

describe('protocol §4.2: cookie grant with an identity per group', () => {
  it.each([
    ['Sales', 'sales'],
    ['a_b', 'aXb'],
    ['1', '01'],
    ['x'.repeat(63), 'x'.repeat(64)],
  ])('compares group ids exactly: %s is not %s', async (one, other) => {
    const first = await visit({ ...G1, group: one });
    const again = await visit({ ...G1, group: one }, cookieHeader(first));
    const second = await visit({ ...G1, group: other }, cookieHeader(first));
    expect(entityOf(again)).toBe(entityOf(first));
    expect(entityOf(second)).not.toBe(entityOf(first));
  });

  it.each(['a', 'a-b_C9', 'x'.repeat(64), '__proto__', '%41'])(
    'accepts a group_id of 1 to 64 letters, digits, _ or -: %s',
    async (group) => {
      const response = await service.post(`/v2/customer/${ACME}/${group}/token`, cookieBody());
      expect(response.status).toBe(200);
      const row = await identitiesOf(service).findOneByOrFail({ entityId: entityOf(response) });
      expect(row.groupId).toBe(decodeURIComponent(group));
    },
  );

  it.each(['a b', 'ä', 'x'.repeat(65), 'a.b', '%00'])('refuses the group_id %j', async (group) => {
    const path = `/v2/customer/${ACME}/${encodeURI(group)}/token`;
    await expectNoCustomerCreated(service, () => service.post(path, cookieBody()), 'group_id');
  });

  it('does not find a route for a group_id of dots, which HTTP clients remove from the path, or without one', async () => {
    for (const group of ['.', '..', '%2e%2e']) {
      const text = rawRequest(`POST /v2/customer/${ACME}/${group}/token`, JSON.stringify(cookieBody()));
      await expectNoCustomerCreated(service, () => exchange(service.url, text), 'group_id');
    }
    expect((await service.post(`/v2/customer/${ACME}//token`, cookieBody())).status).toBe(404);
  });

  it.each<[string, string, object, Record<string, string>]>([
    ['a private application of another organization', 'client_id', { client_id: RIVAL_SITE }, {}],
    ['an unknown application', 'client_id', { client_id: 'nobody' }, {}],
    ['a foreign redirect_uri', 'redirect_uri', { redirect_uri: 'https://evil.example/' }, {}],
    ['a foreign Origin', 'Origin', {}, { origin: RIVAL_ORIGIN }],
    ['another organization in the body', 'organization_id', { organization_id: RIVAL }, {}],
  ])('refuses %s as protocol §4.1 does', async (_, parameter, body, headers) => {
    await expectNoCustomerCreated(
      service,
      () => service.post(groupPath(ACME, 'g1'), cookieBody(body), headers),
      parameter,
    );
  });
});

it('protocol §5.3: a browser has one cookie pair for all organizations and groups, and stays the same browser with the cookies of any earlier response', async () => {
  const step = fc.record({
    scopeIndex: fc.nat(SCOPES.length - 1),
    responseIndex: fc.nat(),
    days: fc.constantFrom(0, 0, 1),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 15 }), async (steps) => {
      const responses: { browser: number; cookie: string; secret: string }[] = [];
      const known = new Map<string, string>();
      for (const { scopeIndex, responseIndex, days } of steps) {
        service.clock.advance({ seconds: days * 86_400 });
        const earlier = responses[responseIndex % (responses.length + 1)];
        const response = await visit(SCOPES[scopeIndex] as CustomerSpace, earlier?.cookie);
        const browser = earlier?.browser ?? responses.length;
        const key = `${browser} in ${scopeIndex}`;
        expect(response.status).toBe(200);
        expect(entityOf(response)).toBe(known.get(key) ?? entityOf(response));
        expect(cookieValue(response.cookies[0])).toBe(entityOf(response));
        expect(browserPartOf(response)).toBe(earlier?.secret ?? browserPartOf(response));
        known.set(key, entityOf(response));
        expect(new Set(known.values()).size).toBe(known.size);
        responses.push({ browser, cookie: cookieHeader(response), secret: browserPartOf(response) });
      }
    }),
    { numRuns: 20 },
  );
});

describe('protocol §5.3: a further customer of a browser', () => {
  /** A browser that leads to this many further customers of other organizations, or of groups of this one. */
  async function browserWith(count: number, organizationOf: (index: number) => string): Promise<TestResponse> {
    const first = await visit(A);
    const [session] = (await sessionsOfBrowser(service, first)) as [Session];
    const sessions = Array.from({ length: count }, (_, index) => ({
      ...session,
      ...{ id: `${session.id}-${index}`, organizationId: organizationOf(index), groupId: `group-${index}` },
      seenDay: (session.seenDay ?? 0) - 2,
    }));
    for (let at = 0; at < count; at += 100) await service.rowsOf(Session).insert(sessions.slice(at, at + 100));
    return first;
  }

  it('gets a new browser if the browser leads to 500 customers', async () => {
    const first = await browserWith(498, (index) => `organization-${index}`);
    const cookie = cookieHeader(first);
    const last = await visit({ organization: ACME, group: 'the-500th' }, cookie);
    expect(browserPartOf(last)).toBe(browserPartOf(first));
    const further = await visit({ organization: ACME, group: 'the-501st' }, cookie);
    expect(browserPartOf(further)).not.toBe(browserPartOf(first));
    expect(await sessionsOfBrowser(service, first)).toHaveLength(500);
    expect(entityOf(await visit(A, cookie)), 'the others stay').toBe(entityOf(first));
  });

  it('replaces the one of 50 customers of the organization that was used longest ago, and none of another', async () => {
    const first = await browserWith(48, () => ACME);
    const cookie = cookieHeader(first);
    const [oldest, other] = [groupNumber(7), groupNumber(8)];
    const ofRival = entityOf(await visit(B, cookie));
    await service.rowsOf(Session).update({ id: await sessionIdIn(first, oldest) }, { seenDay: 1 });
    const fiftieth = await visit({ organization: ACME, group: 'the-50th' }, cookie);
    const kept = await idsOf(first);
    expect(kept).toHaveLength(51);
    const further = await visit({ organization: ACME, group: 'the-51st' }, cookie);
    expect(browserPartOf(further)).toBe(browserPartOf(first));
    const later = await idsOf(first);
    expect(later).toHaveLength(51);
    expect(later.filter((id) => !kept.includes(id))).toHaveLength(1);
    const groups = (await sessionsOfBrowser(service, first)).map(({ groupId }) => groupId);
    expect([groups.includes(oldest), groups.includes(other)]).toEqual([false, true]);
    expect(entityOf(await visit(B, cookie))).toBe(ofRival);
    expect(entityOf(await visit({ organization: ACME, group: 'the-50th' }, cookie))).toBe(entityOf(fiftieth));
  });

  const groupNumber = (index: number) => `group-${index}`;
  const idsOf = async (response: TestResponse) => (await sessionsOfBrowser(service, response)).map(({ id }) => id);
  const sessionIdIn = async (response: TestResponse, group: string) =>
    (await sessionsOfBrowser(service, response)).find(({ groupId }) => groupId === group)?.id as string;
});

it('protocol §5.3: parallel first requests for several groups, to two processes, create one identity for each group', async () => {
  const other = await serviceOfTest({ database: service.database });
  for (const each of [service, other]) delaySelects(each);
  const first = await visit(A);
  const visits = Array.from({ length: 20 }, (_, index) =>
    visit({ organization: ACME, group: `rush${index % 3}` }, cookieHeader(first), index % 2 ? other : service),
  );
  const responses = await Promise.all(visits);
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
  expect(new Set(responses.map(entityOf)).size).toBe(3);
  expect(new Set(responses.map(browserPartOf))).toEqual(new Set([browserPartOf(first)]));
  expect(await sessionsOfBrowser(service, first)).toHaveLength(4);
});

describe('protocol §5.5: the database statements of a request', () => {
  it.each([
    ['protocol §4.1', A],
    ['protocol §4.2', G1],
  ])(
    'are three INSERTs for a new customer, a SELECT for a returning one, and an UPDATE once a day (%s)',
    async (_, scope) => {
      const clock = vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 23, 59, 59));
      const first = await visit(scope);
      const cookie = cookieHeader(first);
      expect(await statementsOf(service, () => visit(scope))).toEqual(['INSERT', 'INSERT', 'INSERT']);
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT']);
      clock.mockReturnValue(Date.UTC(2097, 0, 3));
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT', 'UPDATE']);
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT']);
      clock.mockReturnValue(Date.UTC(2097, 0, 3, 23, 59, 59, 999));
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT']);
      clock.mockReturnValue(Date.UTC(2097, 0, 2));
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT']);
    },
  );

  it('update the day once for each organization and group', async () => {
    const clock = vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2));
    const first = await visit(A);
    const cookie = cookieHeader(first);
    await visit(G1, cookie);
    clock.mockReturnValue(Date.UTC(2097, 0, 5));
    for (const scope of [A, G1]) {
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT', 'UPDATE']);
      expect(await statementsOf(service, () => visit(scope, cookie))).toEqual(['SELECT']);
    }
    const days = (await sessionsOfBrowser(service, first)).map(({ seenDay }) => seenDay);
    expect(days).toEqual(Array(2).fill(Date.UTC(2097, 0, 5) / 86_400_000));
  });

  it('are one transaction for the first request to a further organization or group', async () => {
    const cookie = cookieHeader(await visit(A));
    const transaction = ['SELECT', 'UPDATE', 'SELECT', 'UPDATE', 'INSERT', 'INSERT'];
    expect(await statementsOf(service, () => visit(G1, cookie))).toEqual(transaction);
  });

  it.each([
    ['malformed cookies: three INSERTs', '__svc_cid=x; __svc_cst=y', ['INSERT', 'INSERT', 'INSERT']],
    [
      'a pair that was not set together: three INSERTs',
      `__svc_cid=${UNKNOWN_CUSTOMER}; __svc_cst=${'0'.repeat(112)}`,
      ['INSERT', 'INSERT', 'INSERT'],
    ],
    [
      'an unknown browser: one SELECT and three INSERTs',
      `__svc_cid=${UNKNOWN_CUSTOMER}; __svc_cst=${'0'.repeat(96)}${tagOf('0'.repeat(64), UNKNOWN_CUSTOMER)}`,
      ['SELECT', 'INSERT', 'INSERT', 'INSERT'],
    ],
  ])('are these for invalid cookies: %s', async (_, cookie, expected) => {
    expect(await statementsOf(service, () => visit(A, cookie))).toEqual(expected);
  });

  it.each<[string, object, Record<string, string>]>([
    ['a wrong Origin', {}, { origin: RIVAL_ORIGIN }],
    ['a wrong redirect_uri', { redirect_uri: 'https://evil.example/' }, { origin: ACME_ORIGIN }],
    ['an unknown grant', { grant_type: 'nothing' }, {}],
  ])('are none if a request is refused for %s', async (_, body, headers) => {
    expect(await statementsOf(service, () => service.post(TOKEN, cookieBody(body), headers))).toEqual([]);
  });
});

/** The end of the second cookie, which ties it to the first one (protocol §5.2). */
function tagOf(secret: string, entityId: string): string {
  return createHmac('sha256', secret).update(entityId).digest('hex').slice(0, 16);
}

function groupPath(organization: string, group: string): string {
  return `/v2/customer/${organization}/${group}/token`;
}

function visit(
  { organization, group }: CustomerSpace,
  cookie?: string,
  at: TestService = service,
): Promise<TestResponse> {
  const path = group === undefined ? TOKEN : groupPath(organization, group);
  const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: organization });
  return at.post(path, body, cookie === undefined ? {} : { cookie });
}

function entityOf({ body }: TestResponse): string {
  return body.entity_id;
}
