import { createHmac } from 'node:crypto';
import { describeGrant } from '@customer-authorization/conformance-kit';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { CookieGrant } from '../../../src/grants/cookie/cookie.grant.js';
import { randomSecret, sha256 } from '../../../src/platform/secret.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import {
  browserIdOf,
  browserOf,
  browserPartOf,
  cookieValue,
  expectNoCustomerCreated,
  identitiesOf,
  secretOf,
  sessionsOfBrowser,
} from '../../support/identities.js';
import { exchange, rawRequest } from '../../support/raw-http.js';
import { statementsOf, statementTextsOf } from '../../support/statements.js';
import {
  ACME,
  ACME_NATIVE,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_PREFIX,
  ACME_SITE,
  AT_RIVAL,
  PUBLIC_SITE,
  RIVAL_ORIGIN,
  UNKNOWN_CUSTOMER,
} from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { everythingIn } from '../../support/transfers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const TWO_YEARS_SECONDS = 63_072_000;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** The attributes at 2097-01-02T03:04:05Z, sorted. */
const EXPECTED_ATTRIBUTES = [
  'Domain=auth.example',
  'Expires=Fri, 02 Jan 2099 03:04:05 GMT',
  'HttpOnly',
  `Max-Age=${TWO_YEARS_SECONDS}`,
  'Path=/v2/customer',
  'SameSite=None',
  'Secure',
];
const FROM_PAGE = { origin: ACME_ORIGIN };

const service = useService();

// each request is valid, and leads to a customer of the requested organization
describeGrant(CookieGrant, { valid: () => ({ response_type: 'token' }), anyOrganization: true, forged: () => [] });

describe('protocol §4.1: cookie grant, new or existing customer', () => {
  it('creates a customer for a request without cookies and responds with the fields of protocol §4.9', async () => {
    const { status, body } = await service.post(TOKEN, cookieBody());
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^dev:[\w-]+\.[\w-]+\.[\w-]+$/),
      entity_id: expect.stringMatching(UUID_V7),
      expires_in: 28_800,
      token_type: 'Bearer',
      organization_id: ACME,
    });
  });

  it('gives a returning customer a new token, the same fields and the same entity_id', async () => {
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    const second = await browser.visit();
    expect(second.status).toBe(200);
    expect(Object.keys(second.body).sort()).toEqual(Object.keys(first.body).sort());
    expect(second.body.entity_id).toBe(first.body.entity_id);
    expect(second.body.access_token).not.toBe(first.body.access_token);
  });

  it('changes nothing about a returning customer, for any application', async () => {
    const clock = vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 12));
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    const row = () => identitiesOf(service).findOneBy({ entityId: first.body.entity_id });
    const before = await row();
    const [session] = await sessionsOfBrowser(service, first);
    expect(before).toMatchObject({ organizationId: ACME, groupId: '', generation: Date.UTC(2097, 0, 2, 12) });
    clock.mockReturnValue(Date.UTC(2097, 0, 2, 13));
    const rows = await identitiesOf(service).count();
    await browser.visit({ client_id: PUBLIC_SITE });
    await browser.visit({ client_id: ACME_NATIVE });
    expect(await row()).toEqual(before);
    expect(await identitiesOf(service).count()).toBe(rows);
    clock.mockReturnValue(Date.UTC(2097, 0, 5, 0));
    await browser.visit();
    expect(await row()).toEqual(before);
    const expiresAt = new Date((session?.expiresAt.getTime() ?? 0) + 3 * DAY_SECONDS * 1000);
    expect(await sessionsOfBrowser(service, first), 'only the day, and the end').toEqual([
      { ...session, seenDay: (session?.seenDay ?? 0) + 3, expiresAt },
    ]);
  });

  it('stores the secret only as its hash', async () => {
    const response = await service.post(TOKEN, cookieBody());
    const secret = secretOf(response).slice(32, 96);
    const row = { browserId: browserIdOf(secretOf(response)), secretHash: sha256(secret) };
    expect(await browserOf(service, response)).toMatchObject(row);
    expect(await everythingIn(service)).not.toContain(secret);
  });

  it('needs no Authorization header, and ignores one', async () => {
    for (const authorization of ['Bearer x', 'Basic eDp5', 'x'])
      expect((await service.post(TOKEN, cookieBody(), { authorization })).status).toBe(200);
  });
});

describe('protocol §5.2: the identity cookies', () => {
  it('are two, with the id and the secret, each attribute of protocol §5.2 and Partitioned', async () => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 3, 4, 5, 678));
    const { cookies, body } = await service.post(TOKEN, cookieBody());
    expect(cookies.map((line) => line.split('=')[0])).toEqual(['__svc_cid', '__svc_cst']);
    expect(cookieValue(cookies[0])).toBe(body.entity_id);
    expect(cookieValue(cookies[1])).toMatch(/^[0-9a-f]{112}$/);
    const [secret = '', tag] = [cookieValue(cookies[1]).slice(32, 96), cookieValue(cookies[1]).slice(96)];
    expect(createHmac('sha256', secret).update(body.entity_id).digest('hex').slice(0, 16)).toBe(tag);
    for (const line of cookies) expect(attributesOf(line)).toEqual(['Partitioned', ...EXPECTED_ATTRIBUTES].sort());
  });

  it('have exactly the attributes of protocol §5.2 with COOKIE_PARTITIONED=false', async () => {
    const other = await serviceOfTest({ environment: { COOKIE_PARTITIONED: 'false' } });
    vi.spyOn(other.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 3, 4, 5, 678));
    const { cookies } = await other.post(TOKEN, cookieBody());
    expect(cookies.map(attributesOf)).toEqual([EXPECTED_ATTRIBUTES, EXPECTED_ATTRIBUTES]);
  });

  it('are valid for two years from each request on, and keep the values of the first', async () => {
    const browser = new TestBrowser(service);
    const start = Date.UTC(2097, 0, 2);
    const clock = vi.spyOn(service.clock, 'now').mockReturnValue(start);
    const first = await browser.visit();
    for (const seconds of [0, 1, 86_400, TWO_YEARS_SECONDS]) {
      clock.mockReturnValue(start + seconds * 1000);
      const { cookies } = await browser.visit();
      expect(cookies.map(cookieValue)).toEqual(first.cookies.map(cookieValue));
      for (const line of cookies) {
        expect(attributesOf(line)).toContain(`Max-Age=${TWO_YEARS_SECONDS}`);
        expect(expiresOf(line)).toBe(start / 1000 + seconds + TWO_YEARS_SECONDS);
      }
    }
  });

  it('are named by COOKIE_PREFIX, and cookies with another prefix are ignored', async () => {
    const other = await serviceOfTest({ environment: { COOKIE_PREFIX: 'acme_' } });
    const browser = new TestBrowser(other);
    const first = await browser.visit();
    expect(first.cookies.map((line) => line.split('=')[0])).toEqual(['acme_cid', 'acme_cst']);
    expect((await browser.visit()).body.entity_id).toBe(first.body.entity_id);
    browser.cookie = browser.cookie?.replaceAll('acme_', '__svc_');
    expect((await browser.visit()).body.entity_id).not.toBe(first.body.entity_id);
  });

  it.each([
    ['the host of AUTH_URL, without its port', { AUTH_URL: 'https://login.acme.example:8443' }, ['login.acme.example']],
    ['COOKIE_DOMAIN', { AUTH_URL: 'https://login.acme.example', COOKIE_DOMAIN: 'acme.example' }, ['acme.example']],
    ['no Domain for COOKIE_DOMAIN=host-only', { COOKIE_DOMAIN: 'host-only' }, []],
  ])('are set for %s', async (_, environment, domains) => {
    const other = await serviceOfTest({ environment });
    const { cookies } = await other.post(TOKEN, cookieBody());
    const found = cookies.map((line) => attributesOf(line).filter((attribute) => attribute.startsWith('Domain')));
    expect(found).toEqual([0, 1].map(() => domains.map((domain) => `Domain=${domain}`)));
  });
});

/** The customer of the visitor, and the customer of an attacker who sets cookies in the visitor's browser. */
let own: TestResponse;
let planted: TestResponse;

describe('protocol §5.4: a request without a valid cookie pair creates a new customer:', () => {
  beforeAll(async () => {
    own = await service.visit();
    planted = await service.visit();
  });

  it.each<[string, (id: string, secret: string) => string | Promise<string>]>([
    ['the id alone', (id) => `__svc_cid=${id}`],
    ['an unknown id', (_, secret) => pairWith(UNKNOWN_CUSTOMER, secret)],
    ['a secret with its last digit changed', (id, secret) => pairWith(id, flipped(secret))],
    ['another secret that fits the id', (id, secret) => fittingPair(id, flipped(secret.slice(0, 96)))],
    [
      'the id of an unknown browser with a secret that fits',
      (id, secret) => fittingPair(id, `${uuidv7(Date.now()).replaceAll('-', '')}${secret.slice(32, 96)}`),
    ],
    ['the victim’s id with the own secret', (id) => pairWith(id, secretOf(own))],
    ['the own id with the victim’s secret', (_, secret) => pairWith(own.body.entity_id, secret)],
    ['SQL', (id, secret) => pairWith(`${id}'--`, secret)],
    [
      'the hash in the database as the secret',
      async (id) => {
        const { secretHash } = await browserOf(service, planted);
        return fittingPair(id, `${secretOf(planted).slice(0, 32)}${secretHash}`);
      },
    ],
  ])('%s', async (_, header) => {
    const rows = await identitiesOf(service).count();
    const response = await service.visit(await header(planted.body.entity_id, secretOf(planted)));
    expect(response.status).toBe(200);
    expect([planted.body.entity_id, own.body.entity_id, UNKNOWN_CUSTOMER]).not.toContain(response.body.entity_id);
    expect([secretOf(planted), secretOf(own)]).not.toContain(secretOf(response));
    expect(cookieValue(response.cookies[0])).toBe(response.body.entity_id);
    expect(await identitiesOf(service).count()).toBe(rows + 1);
    for (const each of [planted, own]) expect(await service.idOf(cookieHeader(each))).toBe(each.body.entity_id);
  });
});

describe('protocol §5.4: a request with several identity cookies', () => {
  beforeEach(async () => {
    own = await service.visit();
    service.clock.advance({ seconds: 1 });
    planted = await service.visit();
  });

  const embeddings: [string, (pair: string) => string][] = [
    ['after a comma and a space', (pair) => `theme=dark, ${pair.replace('; ', ', ')}`],
    ['as whole Set-Cookie lines', () => `theme=dark, ${planted.cookies.join(', ')}`],
  ];

  it.each(embeddings)('is ignored: %s', async (_, embed) => {
    const value = embed(cookieHeader(planted));
    for (const headers of [FROM_PAGE, {}]) {
      const response = await visit(value, headers);
      expect(response.body.entity_id).not.toBe(planted.body.entity_id);
      expect(secretOf(response)).not.toBe(secretOf(planted));
      expectOwn(await visit(`${value}; ${cookieHeader(own)}`, headers));
    }
    expectOwn(await visit(`${cookieHeader(own)}; ${value}`, FROM_PAGE));
  });

  const malformed = (text: string) =>
    Array.from({ length: 5 }, (_, n) => `__svc_cid=${text}${n}; __svc_cst=${text}${n}`);

  it.each<[string, () => string[]]>([
    ['an id of another customer', () => [`__svc_cid=${planted.body.entity_id}`]],
    ['three ids and a secret', () => [junkId(), junkId(), junkId(), junkSecret()]],
    ['fifty junk pairs', () => Array.from({ length: 50 }, junkPair)],
    ['malformed pairs', () => malformed('x')],
  ])('keeps the visitor’s identity if they come before or after the own pair: %s', async (_, others) => {
    const rows = await identitiesOf(service).count();
    expectOwn(await visit([...others(), cookieHeader(own)].join('; '), FROM_PAGE));
    expectOwn(await visit([cookieHeader(own), ...others()].join('; '), FROM_PAGE));
    expectOwn(await visit([...others(), cookieHeader(own), ...malformed('y')].join('; '), FROM_PAGE));
    expect(await identitiesOf(service).count()).toBe(rows);
  });

  it('keeps the visitor’s identity if other cookies are between the visitor’s id and secret', async () => {
    const [id = '', secret = ''] = cookieHeader(own).split('; ');
    expectOwn(await visit([junkPair(), secret, junkPair(), id, junkPair()].join('; '), FROM_PAGE));
    const headers = [secret, junkPair(), id].map((cookie) => `Cookie: ${cookie}`);
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, JSON.stringify(cookieBody()), headers));
    expect(response.body.entity_id, 'in several Cookie headers').toBe(own.body.entity_id);
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
    const newer = planted; // created after `own`
    const [first, last] = [cookieHeader(own), cookieHeader(newer)];
    for (const cookie of [`${first}; ${last}`, `${last}; ${first}`, `${last}; ${junkPair()}; ${first}`]) {
      const response = await visit(cookie, FROM_PAGE);
      expect(response.body.entity_id).toBe(newer.body.entity_id);
      expect(response.cookies.map(cookieValue)).toEqual(newer.cookies.map(cookieValue));
    }
    const ofRival = await service.visit(`${last}; ${first}`, AT_RIVAL);
    expect(browserPartOf(ofRival), 'a further customer').toBe(browserPartOf(newer));
    expectOwn(await visit(first));
    const group = await service.visit(first, {}, `/v2/customer/${ACME}/late/token`);
    expect(group.body.entity_id > newer.body.entity_id).toBe(true);
    const response = await visit(`${cookieHeader(group)}; ${last}`);
    expect(response.body.entity_id, 'in spite of the later id of the customer').toBe(newer.body.entity_id);
  });

  it('keeps the other customers of a browser one of whose customers was erased', async () => {
    const group = `/v2/customer/${ACME}/kept/token`;
    const ofGroup = await service.idOf(cookieHeader(own), {}, group);
    expect((await service.erase(own.body.entity_id)).status).toBe(200);
    for (const cookie of [cookieHeader(own), `${junkPair()}; ${cookieHeader(own)}`]) {
      const response = await service.visit(cookie, {}, group);
      expect([response.body.entity_id, browserPartOf(response)]).toEqual([ofGroup, browserPartOf(own)]);
    }
    const [id] = cookieHeader(own).split('; ');
    expect(await service.idOf(`${id}; ${cookieHeader(planted)}`)).toBe(planted.body.entity_id);
  });

  it('sends one SELECT, with the same text for 1 and 50 other pairs, and with one pair that is sent twice', async () => {
    const pair = cookieHeader(own);
    const alone = await statementTextsOf(service, () => visit(pair));
    expect(alone).toEqual([expect.stringMatching(/^SELECT .* WHERE browser\.browser_id = \?/s)]);
    expect(await statementTextsOf(service, () => visit(`${pair}; ${pair}`))).toEqual(alone);
    for (const count of [1, 50]) {
      const junk = Array.from({ length: count }, junkPair).join('; ');
      for (const cookie of [`${junk}; ${pair}`, `${pair}; ${junk}`]) {
        const texts = await statementTextsOf(service, async () => expectOwn(await visit(cookie)));
        expect(texts).toEqual([expect.stringMatching(/^SELECT .* WHERE browser\.browser_id IN \(\?,\?,\?,\?\)/s)]);
      }
    }
  });

  it('updates the day once, and only of the browser that is recognized', async () => {
    const both = `${cookieHeader(planted)}; ${cookieHeader(own)}`;
    const clock = vi.spyOn(service.clock, 'now').mockReturnValue(Date.now() + DAY_SECONDS * 1000);
    expect(await statementsOf(service, () => visit(both))).toEqual(['SELECT', 'UPDATE']);
    expect(await statementsOf(service, () => visit(both))).toEqual(['SELECT']);
    clock.mockRestore();
    const [[ofPlanted], [ofOwn]] = [await sessionsOfBrowser(service, planted), await sessionsOfBrowser(service, own)];
    expect(ofPlanted?.seenDay).toBe((ofOwn?.seenDay as number) + 1);
  });
});

describe('protocol §8.4: a redirect_uri in the request', () => {
  it.each([
    [ACME_NATIVE, 'example.acme:/callback'],
    [ACME_PREFIX, 'https://acme.example/app/x/y.html'],
  ])('is accepted from %s if it is %j', async (client_id, redirect_uri) => {
    expect((await service.post(TOKEN, cookieBody({ client_id, redirect_uri }))).status).toBe(200);
  });

  it.each([
    [ACME_SITE, 'https://acme.example/chat'],
    [ACME_PREFIX, 'https://acme.example/apple'],
  ])('is refused from %s if it is %j, with a valid Origin or without any', async (client_id, redirect_uri) => {
    for (const headers of [{}, FROM_PAGE]) {
      const send = () => service.post(TOKEN, cookieBody({ client_id, redirect_uri }), headers);
      await expectNoCustomerCreated(service, send, 'redirect_uri');
    }
  });
});

describe('protocol §2.8: the Origin of a request', () => {
  it('is accepted if it belongs to the client, also if it is only in its list of origins', async () => {
    for (const more of [{}, { redirect_uri: ACME_PAGE }]) {
      const response = await service.post(TOKEN, cookieBody(more), FROM_PAGE);
      expect(response).toMatchObject({ status: 200, cookies: [expect.any(String), expect.any(String)] });
    }
    const ofApp = { origin: 'capacitor://localhost' };
    expect((await service.post(TOKEN, cookieBody({ client_id: ACME_NATIVE }), ofApp)).status).toBe(200);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json'])(
    'changes nothing as %s, and the other site cannot read the customer’s data',
    async (type) => {
      const browser = new TestBrowser(service);
      const { entity_id } = (await browser.visit()).body;
      const row = () => identitiesOf(service).findOneByOrFail({ entityId: entity_id });
      const before = await row();
      service.clock.advance({ seconds: 86_400 });
      for (const path of [TOKEN, `/v2/customer/${ACME}/sales/token`]) {
        for (const origin of ['https://evil.example', 'null', RIVAL_ORIGIN]) {
          const headers = { cookie: browser.cookie as string, origin, 'content-type': type };
          const send = () => service.post(path, cookieBody(), headers);
          const response = await expectNoCustomerCreated(service, send, 'Origin');
          expect(response.text).not.toContain(entity_id);
        }
      }
      expect(await row()).toEqual(before);
      expect((await browser.visit()).body.entity_id).toBe(entity_id);
    },
  );
});

function visit(cookie?: string, headers: Record<string, string> = {}): Promise<TestResponse> {
  return service.post(TOKEN, cookieBody(), { ...headers, ...(cookie !== undefined && { cookie }) });
}

function expectOwn(response: TestResponse): void {
  expect({ status: response.status, id: response.body.entity_id }).toEqual({ status: 200, id: own.body.entity_id });
  expect(response.cookies.map(cookieValue)).toEqual(own.cookies.map(cookieValue));
}

/** A pair that fits together and belongs to no browser. */
const junkPair = () => fittingPair(uuidv7(Date.now()), randomSecret('hex', 48));
const junkId = () => `__svc_cid=${uuidv7(Date.now())}`;
const junkSecret = () => `__svc_cst=${randomSecret('hex', 56)}`;

function attributesOf(line: string): string[] {
  return line.split('; ').slice(1).sort();
}

function expiresOf(line: string): number {
  return Date.parse(/Expires=([^;]+)/.exec(line)?.[1] ?? '') / 1000;
}

function pairWith(id: string, secret: string): string {
  return `__svc_cid=${id}; __svc_cst=${secret}`;
}

/** A pair that looks as if it had been set together. */
function fittingPair(id: string, browserIdAndSecret: string): string {
  const tag = createHmac('sha256', browserIdAndSecret.slice(32)).update(id).digest('hex').slice(0, 16);
  return pairWith(id, `${browserIdAndSecret}${tag}`);
}

function flipped(secret: string): string {
  return secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0');
}
