import { beforeEach, describe, expect, it, vi } from 'vitest';
import { randomSecret } from '../../src/platform/secret.js';
import { uuidv7 } from '../../src/platform/uuid.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { cookieValue, identitiesOf, linksOfBrowser, secretOf } from '../support/identities.js';
import { statementsOf, statementTextsOf } from '../support/statements.js';
import { ACME, ACME_ORIGIN, PUBLIC_ORIGIN, PUBLIC_SITE, RIVAL, testRegistry } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../support/use-service.js';

const FROM_PAGE = { origin: ACME_ORIGIN };

const service = useService({ registry: testRegistry() });

/** The customer of the visitor, and the customer of an attacker who sets cookies in the visitor's browser. */
let own: TestResponse;
let planted: TestResponse;
beforeEach(async () => {
  own = await visit();
  service.clock.advance({ seconds: 1 });
  planted = await visit();
});

describe('an identity cookie inside the value of another cookie', () => {
  const embeddings: [string, (pair: string) => string][] = [
    ['after a comma and a space', (pair) => `theme=dark, ${pair.replace('; ', ', ')}`],
    ['as whole Set-Cookie lines', () => `theme=dark, ${planted.cookies.join(', ')}`],
  ];

  it.each(embeddings)('is ignored: %s', async (_, embed) => {
    for (const headers of [FROM_PAGE, {}]) {
      const response = await visit(embed(cookieHeader(planted)), headers);
      expect(response.status).toBe(200);
      expect(response.body.entity_id).not.toBe(planted.body.entity_id);
      expect(secretOf(response)).not.toBe(secretOf(planted));
    }
  });

  it.each(embeddings)('does not make the visitor lose the own identity: %s', async (_, embed) => {
    const value = embed(cookieHeader(planted));
    for (const headers of [FROM_PAGE, {}]) expectOwn(await visit(`${value}; ${cookieHeader(own)}`, headers));
    expectOwn(await visit(`${cookieHeader(own)}; ${value}`, FROM_PAGE));
  });

  it('is ignored after the visitor’s own cookies in a request of a page, joined by commas', async () => {
    expectOwn(await visit(`${cookieHeader(own)}; theme=dark, ${planted.cookies.join(', ')}`, FROM_PAGE));
    const response = await visit([...own.cookies, ...planted.cookies].join(', '), FROM_PAGE);
    expect([own.body.entity_id, planted.body.entity_id]).not.toContain(response.body.entity_id);
  });
});

describe('a request with several identity cookies', () => {
  it.each<[string, () => string[]]>([
    ['an id of another customer', () => [`__svc_cid=${planted.body.entity_id}`]],
    ['three ids and a secret', () => [...times(3, junkId), junkSecret()]],
    ['fifty junk pairs', () => times(50, junkPair)],
  ])('keeps the visitor’s identity if they come before or after the own pair: %s', async (_, others) => {
    const rows = await identitiesOf(service).count();
    expectOwn(await visit([...others(), cookieHeader(own)].join('; '), FROM_PAGE));
    expectOwn(await visit([cookieHeader(own), ...others()].join('; '), FROM_PAGE));
    expect(await identitiesOf(service).count()).toBe(rows);
  });

  it('keeps the visitor’s identity if other cookies are between the visitor’s id and secret', async () => {
    const [id = '', secret = ''] = cookieHeader(own).split('; ');
    expectOwn(await visit([junkPair(), secret, junkPair(), id, junkPair()].join('; '), FROM_PAGE));
    expectOwn(await visit([secret, junkPair(), junkPair(), id].join('; '), FROM_PAGE));
  });

  it('keeps the visitor’s identity if malformed cookies come before and after the own pair', async () => {
    const malformed = (text: string) => times(5, (n) => `__svc_cid=${text}${n}; __svc_cst=${text}${n}`);
    expectOwn(await visit([...malformed('x'), cookieHeader(own), ...malformed('y')].join('; '), FROM_PAGE));
  });

  it('never recognizes a customer by an id and a secret of different browsers', async () => {
    const third = await visit();
    const ids = [planted, third].map(({ body }) => `__svc_cid=${body.entity_id}`);
    const response = await visit([...ids, `__svc_cst=${secretOf(own)}`, junkSecret()].join('; '));
    const known = [own, planted, third];
    expect(known.map(({ body }) => body.entity_id)).not.toContain(response.body.entity_id);
    expect(known.map(secretOf)).not.toContain(secretOf(response));
  });

  it('is of the browser that was created last if several pairs are valid, in any order', async () => {
    const newer = planted; // Created after `own`.
    const [first, last] = [cookieHeader(own), cookieHeader(newer)];
    for (const cookie of [`${first}; ${last}`, `${last}; ${first}`, `${last}; ${junkPair()}; ${first}`]) {
      const response = await visit(cookie, FROM_PAGE);
      expect(response.body.entity_id).toBe(newer.body.entity_id);
      expect(response.cookies.map(cookieValue)).toEqual(newer.cookies.map(cookieValue));
    }
    expectOwn(await visit(first));
  });

  it('compares the creation time of the browsers, not of the ids in the cookies', async () => {
    const group = await service.post(`/v2/customer/${ACME}/late/token`, cookieBody(), { cookie: cookieHeader(own) });
    expect(group.body.entity_id > planted.body.entity_id).toBe(true);
    const response = await visit(`${cookieHeader(group)}; ${cookieHeader(planted)}`);
    expect(response.body.entity_id).toBe(planted.body.entity_id);
  });

  it('creates the identity in a further organization only for the browser that was created last', async () => {
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id: RIVAL });
    const headers = { origin: PUBLIC_ORIGIN, cookie: `${cookieHeader(planted)}; ${cookieHeader(own)}` };
    const response = await service.post(TOKEN, body, headers);
    const links = await linksOfBrowser(service, planted);
    expect(links.map(({ entityId }) => entityId)).toContain(response.body.entity_id);
    expect(secretOf(response)).toBe(secretOf(planted));
  });

  it('keeps the other customers of a browser one of whose customers was erased', async () => {
    const group = `/v2/customer/${ACME}/kept/token`;
    const groupCustomer = await service.post(group, cookieBody(), { cookie: cookieHeader(own) });
    expect((await service.erase(own.body.entity_id)).status).toBe(200);
    for (const cookie of [cookieHeader(own), `${junkPair()}; ${cookieHeader(own)}`]) {
      const response = await service.post(group, cookieBody(), { cookie });
      expect(response.body.entity_id).toBe(groupCustomer.body.entity_id);
      expect(secretOf(response)).toBe(secretOf(own));
    }
    const [id] = cookieHeader(own).split('; ');
    const stray = `${id}; ${cookieHeader(planted)}`;
    expect((await visit(stray)).body.entity_id).toBe(planted.body.entity_id);
  });
});

describe('the statements of a request with identity cookies', () => {
  it('are one SELECT for a returning customer with one pair, also if the pair is sent twice', async () => {
    const pair = cookieHeader(own);
    const [one, ...more] = await statementTextsOf(service, () => visit(pair));
    expect(more).toEqual([]);
    expect(one).toMatch(/^SELECT .* WHERE browser\.browser_id = \?/s);
    expect(await statementTextsOf(service, () => visit(`${pair}; ${pair}`))).toEqual([one]);
    expect(await statementsOf(service, () => visit(`${pair}; ${junkSecret()}`))).toEqual(['SELECT']);
  });

  it.each([1, 50])('are one SELECT with the same text with %i other pairs', async (count) => {
    const junk = times(count, junkPair).join('; ');
    for (const cookie of [`${junk}; ${cookieHeader(own)}`, `${cookieHeader(own)}; ${junk}`]) {
      const texts = await statementTextsOf(service, async () => expectOwn(await visit(cookie)));
      expect(texts).toEqual([expect.stringMatching(/^SELECT .* WHERE browser\.browser_id IN \(\?,\?,\?,\?\)/s)]);
    }
  });

  it('are one SELECT and three INSERTs if no pair is valid', async () => {
    expect(await statementsOf(service, () => visit(times(50, junkPair).join('; ')))).toEqual([
      ...['SELECT', 'INSERT', 'INSERT', 'INSERT'],
    ]);
  });

  it('update the day once, and only of the browser that is recognized', async () => {
    const both = `${cookieHeader(planted)}; ${cookieHeader(own)}`;
    const clock = vi.spyOn(service.clock, 'now').mockReturnValue(Date.now() + DAY_SECONDS * 1000);
    expect(await statementsOf(service, () => visit(both))).toEqual(['SELECT', 'UPDATE']);
    expect(await statementsOf(service, () => visit(both))).toEqual(['SELECT']);
    clock.mockRestore();
    const dayOf = async (response: TestResponse) => {
      const links = await linksOfBrowser(service, response);
      return links.find(({ entityId }) => entityId === response.body.entity_id)?.seenDay as number;
    };
    expect(await dayOf(planted)).toBe((await dayOf(own)) + 1);
  });
});

describe('a change of COOKIE_PARTITIONED', () => {
  it('keeps the customers of browsers that send old cookies together with new ones', async () => {
    const { database } = service;
    const before = await serviceOfTest({
      registry: testRegistry(),
      database,
      environment: { COOKIE_PARTITIONED: 'false' },
    });
    const browser = new TestBrowser(before);
    const toAcme = await browser.visit();
    const unpartitioned = browser.cookie as string;
    const ofRival = cookieBody({ client_id: PUBLIC_SITE, organization_id: RIVAL });
    const toRival = await service.post(TOKEN, ofRival, { cookie: unpartitioned });
    const both = `${unpartitioned}; ${cookieHeader(toRival)}`;
    expect((await visit(both)).body.entity_id).toBe(toAcme.body.entity_id);
    const again = await service.post(TOKEN, ofRival, { cookie: both });
    expect(again.body.entity_id).toBe(toRival.body.entity_id);
    expect(again.cookies.every((line) => line.endsWith('; Partitioned'))).toBe(true);
    expect(toAcme.cookies.some((line) => line.includes('Partitioned'))).toBe(false);
  });
});

function visit(cookie?: string, headers: Record<string, string> = {}): Promise<TestResponse> {
  return service.post(TOKEN, cookieBody(), { ...headers, ...(cookie !== undefined && { cookie }) });
}

function expectOwn(response: TestResponse): void {
  expect({ status: response.status, id: response.body.entity_id }).toEqual({ status: 200, id: own.body.entity_id });
  expect(response.cookies.map(cookieValue)).toEqual(own.cookies.map(cookieValue));
}

/** A well-formed pair that belongs to no browser. */
function junkPair(): string {
  return `${junkId()}; ${junkSecret()}`;
}

function junkId(): string {
  return `__svc_cid=${uuidv7(Date.now())}`;
}

function junkSecret(): string {
  return `__svc_cst=${randomSecret('hex', 48)}`;
}

function times<Value>(count: number, make: (index: number) => Value): Value[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
