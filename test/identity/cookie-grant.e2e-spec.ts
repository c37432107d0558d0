import { describeGrant } from 'conformance-kit';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { CookieGrant } from '../../src/grants/cookie/cookie.grant.js';
import { partsOf, secretCookieOf } from '../../src/identity/identity-cookies.js';
import { sha256 } from '../../src/platform/secret.js';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import {
  browserOf,
  cookieValue,
  expectNoCustomerCreated,
  identitiesOf,
  linksOfBrowser,
  pairOf,
  secretOf,
} from '../support/identities.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_PREFIX,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  SHARED,
  testRegistry,
} from '../support/test-registry.js';
import { type TestResponse, type TestService } from '../support/test-service.js';
import { everythingIn } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

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
const UNKNOWN_CUSTOMER_ID = '01890000-0000-7000-8000-000000000000';

const service = useService({ registry: registryOfThisFile() });

describeGrant(CookieGrant, { valid: () => ({ response_type: 'token' }), endsWithCaller: false });

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
    const noon = vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 12));
    const browser = new TestBrowser(service);
    const { body } = await browser.visit();
    const before = await rowOf(body.entity_id);
    expect(before).toMatchObject({ organizationId: ACME, groupId: '', generation: 0 });
    noon.mockReturnValue(Date.UTC(2097, 0, 2, 13));
    const rows = await identitiesOf(service).count();
    await browser.visit({ client_id: PUBLIC_SITE });
    await browser.visit({ client_id: ACME_NATIVE });
    expect(await rowOf(body.entity_id)).toEqual(before);
    expect(await identitiesOf(service).count()).toBe(rows);
  });

  it('updates only the day of a customer who returns on another day', async () => {
    const noon = vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 12));
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    const before = await rowOf(first.body.entity_id);
    const [link] = await linksOfBrowser(service, first);
    noon.mockReturnValue(Date.UTC(2097, 0, 5, 0));
    await browser.visit();
    expect(await rowOf(first.body.entity_id)).toEqual(before);
    expect(await linksOfBrowser(service, first)).toEqual([{ ...link, seenDay: (link?.seenDay ?? 0) + 3 }]);
  });

  it('stores the secret only as its hash', async () => {
    const response = await service.post(TOKEN, cookieBody());
    const { browserId, secret } = partsOf(secretOf(response));
    expect(await browserOf(service, response)).toMatchObject({ browserId, secretHash: sha256(secret) });
    expect(await everythingIn(service)).not.toContain(secret);
  });
});

describe('protocol §5.2: the identity cookies', () => {
  it('are two, with the id of the customer and its secret', async () => {
    const { cookies, body } = await service.post(TOKEN, cookieBody());
    expect(cookies.map((line) => line.split('=')[0])).toEqual(['__svc_cid', '__svc_cst']);
    expect(cookieValue(cookies[0])).toBe(body.entity_id);
    expect(cookieValue(cookies[1])).toMatch(/^[0-9a-f]{96}$/);
  });

  it('have each attribute of protocol §5.2 and Partitioned, with an Expires that matches Max-Age', async () => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 3, 4, 5, 678));
    const { cookies } = await service.post(TOKEN, cookieBody());
    for (const line of cookies) expect(attributesOf(line)).toEqual(['Partitioned', ...EXPECTED_ATTRIBUTES].sort());
  });

  it('have exactly the attributes of protocol §5.2 with COOKIE_PARTITIONED=false', async () => {
    await withService({ COOKIE_PARTITIONED: 'false' }, async (other) => {
      vi.spyOn(other.clock, 'now').mockReturnValue(Date.UTC(2097, 0, 2, 3, 4, 5, 678));
      const { cookies } = await other.post(TOKEN, cookieBody());
      expect(cookies).toHaveLength(2);
      for (const line of cookies) expect(attributesOf(line)).toEqual(EXPECTED_ATTRIBUTES);
    });
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
    await withService({ COOKIE_PREFIX: 'acme_' }, async (other) => {
      const browser = new TestBrowser(other);
      const first = await browser.visit();
      expect(first.cookies.map((line) => line.split('=')[0])).toEqual(['acme_cid', 'acme_cst']);
      expect((await browser.visit()).body.entity_id).toBe(first.body.entity_id);
      browser.cookie = browser.cookie?.replaceAll('acme_', '__svc_');
      expect((await browser.visit()).body.entity_id).not.toBe(first.body.entity_id);
    });
  });

  it.each([
    ['the host of AUTH_URL, without its port', { AUTH_URL: 'https://login.acme.example:8443' }, ['login.acme.example']],
    ['COOKIE_DOMAIN', { COOKIE_DOMAIN: 'acme.example' }, ['acme.example']],
    ['no Domain for COOKIE_DOMAIN=host-only', { COOKIE_DOMAIN: 'host-only' }, []],
  ])('are set for %s', async (_, environment, domains) => {
    await withService(environment, async (other) => {
      const { cookies } = await other.post(TOKEN, cookieBody());
      const found = cookies.map((line) => attributesOf(line).filter((attribute) => attribute.startsWith('Domain')));
      expect(found).toEqual([0, 1].map(() => domains.map((domain) => `Domain=${domain}`)));
    });
  });
});

describe('protocol §5.4: a customer is recognized', () => {
  let customer: TestResponse;
  beforeAll(async () => {
    customer = await service.post(TOKEN, cookieBody());
  });

  it.each<[string, (cookies: [string, string]) => string]>([
    ['by the pair', ([cid, cst]) => `${pairOf(cid)}; ${pairOf(cst)}`],
    ['by the pair in the other order', ([cid, cst]) => `${pairOf(cst)}; ${pairOf(cid)}`],
    ['by whole Set-Cookie lines, joined by a comma', (lines) => lines.join(', ')],
    ['by the first of two pairs', ([cid, cst]) => `${pairOf(cid)}; ${pairOf(cst)}; ${pairWith(UNKNOWN_CUSTOMER_ID)}`],
  ])('%s', async (_, header) => {
    const rows = await identitiesOf(service).count();
    const response = await service.post(TOKEN, cookieBody(), { cookie: header(customer.cookies as [string, string]) });
    expect(response.status).toBe(200);
    expect(response.body.entity_id).toBe(customer.body.entity_id);
    expect(response.cookies.map(cookieValue)).toEqual(customer.cookies.map(cookieValue));
    expect(await identitiesOf(service).count()).toBe(rows);
  });

  it('by two Cookie headers with one cookie each', async () => {
    const headers = customer.cookies.map((line) => `Cookie: ${pairOf(line)}`);
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, JSON.stringify(cookieBody()), headers));
    expect(response.body.entity_id).toBe(customer.body.entity_id);
  });
});

describe('protocol §5.4: a request without a valid cookie pair creates a new customer:', () => {
  let victim: TestResponse;
  let own: TestResponse;
  beforeAll(async () => {
    victim = await service.post(TOKEN, cookieBody());
    own = await service.post(TOKEN, cookieBody());
  });

  it.each<[string, (id: string, secret: string) => string]>([
    ['other cookies alone', () => 'session=1; theme=dark'],
    ['the id alone', (id) => `__svc_cid=${id}`],
    ['an unknown id', (_, secret) => `__svc_cid=${UNKNOWN_CUSTOMER_ID}; __svc_cst=${secret}`],
    ['a secret with its last digit changed', (id, secret) => pairWith(id, flipped(secret))],
    ['the victim’s id with the own secret', (id) => pairWith(id, secretOf(own))],
    ['the own id with the victim’s secret', (_, secret) => pairWith(own.body.entity_id, secret)],
    ['id and secret exchanged', (id, secret) => pairWith(secret, id)],
    ['SQL', (id, secret) => pairWith(`${id}'--`, secret)],
  ])('%s', async (_, header) => {
    const rows = await identitiesOf(service).count();
    const cookie = header(victim.body.entity_id, secretOf(victim));
    const response = await service.post(TOKEN, cookieBody(), { cookie });
    expect(response.status).toBe(200);
    expect([victim.body.entity_id, own.body.entity_id, UNKNOWN_CUSTOMER_ID]).not.toContain(response.body.entity_id);
    expect([secretOf(victim), secretOf(own)]).not.toContain(secretOf(response));
    expect(cookieValue(response.cookies[0])).toBe(response.body.entity_id);
    expect(await identitiesOf(service).count()).toBe(rows + 1);
  });

  it('the hash in the database as the secret', async () => {
    const { browserId, secretHash } = await browserOf(service, victim);
    const cookie = pairWith(victim.body.entity_id, secretCookieOf(browserId, secretHash));
    const response = await service.post(TOKEN, cookieBody(), { cookie });
    expect(response.body.entity_id).not.toBe(victim.body.entity_id);
  });

  it('and the pairs of both customers still work afterwards', async () => {
    for (const { body, cookies } of [victim, own]) {
      const response = await service.post(TOKEN, cookieBody(), {
        cookie: cookies.map((line) => pairOf(line)).join('; '),
      });
      expect(response.body.entity_id).toBe(body.entity_id);
    }
  });
});

describe('protocol §8.4: a redirect_uri in the request', () => {
  it('is accepted if it equals one of the client’s, character for character', async () => {
    const response = await service.post(TOKEN, cookieBody({ redirect_uri: ACME_PAGE }));
    expect(response.status).toBe(200);
  });

  it.each(['https://acme.example/chat', 'https://acme.example/chat/?x=1', 'https://rival.example/', ''])(
    'is refused if it is %j, with a valid Origin or without any',
    async (redirect_uri) => {
      for (const headers of [{}, { origin: ACME_ORIGIN }]) {
        const send = () => service.post(TOKEN, cookieBody({ redirect_uri }), headers);
        await expectErrorWithoutCustomer(send, 'redirect_uri');
      }
    },
  );

  it('may be below the one of a client that is registered with prefix, and not elsewhere', async () => {
    const body = (rest: string) =>
      cookieBody({ client_id: ACME_PREFIX, redirect_uri: `https://acme.example/app${rest}` });
    for (const rest of ['', '/x/y.html']) expect((await service.post(TOKEN, body(rest))).status).toBe(200);
    for (const rest of ['le', '/../x', '/x?y'])
      await expectErrorWithoutCustomer(() => service.post(TOKEN, body(rest)), 'redirect_uri');
  });
});

describe('protocol §2.8: the Origin of a request', () => {
  it.each([
    ['without a redirect_uri', {}],
    ['with a redirect_uri', { redirect_uri: ACME_PAGE }],
  ])('is accepted if it belongs to the client, %s', async (_, more) => {
    const response = await service.post(TOKEN, cookieBody(more), { origin: ACME_ORIGIN });
    expect(response.status).toBe(200);
    expect(response.cookies).toHaveLength(2);
  });

  it('is accepted if it is only in the client’s list of origins', async () => {
    const response = await service.post(TOKEN, cookieBody({ client_id: ACME_NATIVE }), {
      origin: 'capacitor://localhost',
    });
    expect(response.status).toBe(200);
  });

  it.each(['null', '', 'https://acme.example:443', 'https://acme.example.evil.example', RIVAL_ORIGIN])(
    'is refused if it is %j, with or without a redirect_uri, and no customer is created',
    async (origin) => {
      for (const more of [{}, { redirect_uri: ACME_PAGE }])
        await expectErrorWithoutCustomer(() => service.post(TOKEN, cookieBody(more), { origin }), 'Origin');
    },
  );

  it.each([
    ['only a private-use redirect URI', 'phone'],
    ['no redirect URI', 'bare'],
  ])('is refused for a client with %s', async (_, client_id) => {
    for (const origin of ['null', ACME_ORIGIN]) {
      await expectErrorWithoutCustomer(() => service.post(TOKEN, cookieBody({ client_id }), { origin }), 'Origin');
    }
    expect((await service.post(TOKEN, cookieBody({ client_id }))).status).toBe(200);
  });
});

describe('protocol §4.10: the cookie grant can be used by', () => {
  it.each([ACME_SITE, ACME_NATIVE, ACME_BACKEND])(
    'the application %s without redirect_uri and Origin, with response_type token',
    async (client_id) => {
      expect((await service.post(TOKEN, cookieBody({ client_id }))).status).toBe(200);
    },
  );

  it('a native application with its private-use redirect URI', async () => {
    const body = cookieBody({ client_id: ACME_NATIVE, redirect_uri: 'example.acme:/callback' });
    expect((await service.post(TOKEN, body)).status).toBe(200);
  });

  it.each([ACME, RIVAL, SHARED])('a public application in the organization %s', async (organization_id) => {
    const body = cookieBody({ client_id: PUBLIC_SITE, organization_id });
    const response = await service.post(TOKEN, body, { origin: PUBLIC_ORIGIN });
    expect([response.status, response.body.organization_id]).toEqual([200, organization_id]);
  });

  it.each([
    ['client_id', ACME_SITE.toUpperCase()],
    ['client_id', '__proto__'],
    ['organization_id', UNKNOWN_CUSTOMER_ID],
    ['organization_id', `${ACME} `],
  ])('only known applications and organizations: an unknown %s is a malformed request: %j', async (name, value) => {
    await expectErrorWithoutCustomer(() => service.post(TOKEN, cookieBody({ [name]: value })), name);
  });
});

describe('the parameters of protocol §4.1', () => {
  it.each(['code', 'Token', 'code token'])(
    'are refused if response_type is %j instead of token, for every client type',
    async (response_type) => {
      for (const client_id of [ACME_SITE, ACME_BACKEND, ACME_NATIVE]) {
        await expectErrorWithoutCustomer(
          () => service.post(TOKEN, cookieBody({ client_id, response_type })),
          'response_type',
        );
      }
    },
  );

  it.each(['Cookie', 'cookie ', 'COOKIE', 'cookies', 'password', '__proto__', 'constructor'])(
    'are refused with unsupported_grant_type if grant_type is %j',
    async (grant_type) => {
      const send = () => service.post(TOKEN, cookieBody({ grant_type }));
      await expectErrorWithoutCustomer(send, 'grant_type', 'unsupported_grant_type');
    },
  );

  it('need no Authorization header, and an existing one is ignored', async () => {
    for (const authorization of ['Bearer x', 'Basic eDp5', 'x']) {
      expect((await service.post(TOKEN, cookieBody(), { authorization })).status).toBe(200);
    }
  });
});

/** The registry of all tests with some clients for this file. */
function registryOfThisFile() {
  const registry = testRegistry();
  const client = { name: 'Acme', client_type: 'web', organization_id: ACME };
  registry.clients.push(
    { ...client, client_id: 'bare' },
    { ...client, client_id: 'phone', client_type: 'native', redirect_uris: ['example.acme:/callback'] },
  );
  return registry;
}

async function withService(environment: Record<string, string>, use: (other: TestService) => Promise<void>) {
  const other = await serviceOfTest({ environment });
  await use(other);
}

function rowOf(entityId: string) {
  return identitiesOf(service).findOneBy({ entityId });
}

function expectErrorWithoutCustomer(
  send: () => Promise<TestResponse>,
  ...rule: [string, string?, string?]
): Promise<TestResponse> {
  return expectNoCustomerCreated(service, send, ...rule);
}

function attributesOf(line: string): string[] {
  return line.split('; ').slice(1).sort();
}

function expiresOf(line: string): number {
  return Date.parse(/Expires=([^;]+)/.exec(line)?.[1] ?? '') / 1000;
}

function pairWith(id: string, secret = '0'.repeat(64)): string {
  return `__svc_cid=${id}; __svc_cst=${secret}`;
}

function flipped(secret: string): string {
  return secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0');
}
