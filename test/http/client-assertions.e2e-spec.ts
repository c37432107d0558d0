import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { AUTH_URL } from '../support/assertion-issuer.js';
import { basic, bearer } from '../support/authorization-headers.js';
import {
  API_ACCOUNT,
  accountToken,
  asForm,
  asserting,
  BACKEND_ACCOUNT,
  CLUSTER_CLIENT,
  CLUSTER_SERVER,
  introspect,
  JWT_ASSERTION,
  ownAssertion,
  registryWithKeys,
  revoke,
  SIGNING_CLIENT,
  SIGNING_SERVER,
} from '../support/client-assertions.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME_BACKEND, ACME_SITE, BACKEND_SECRET } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../support/use-service.js';

let own: TestIssuer;
let cluster: TestIssuer;
beforeAll(async () => {
  [own, cluster] = await Promise.all([TestIssuer.start(), TestIssuer.start('RS256')]);
});
afterAll(() => Promise.all([own.stop(), cluster.stop()]));

const logged = new OutputCapture();
const service = useService(() => ({ registry: registryWithKeys(own, cluster), log: logged.log }));
const seconds = () => service.clock.seconds();
const sign = (claims: object = {}, header: object = {}, key = own.keys[0]) =>
  ownAssertion(own, service.clock.now(), claims, header, key);
const platform = (claims: object = {}, header: object = {}) =>
  accountToken(cluster, service.clock.now(), claims, header);
const ofServer = { iss: SIGNING_SERVER, sub: SIGNING_SERVER };

const asOwn = async (assertion: unknown, more: object = {}) =>
  revoke(service, asserting(SIGNING_CLIENT, assertion, more));
const asAccount = async (token: unknown) => revoke(service, asserting(CLUSTER_CLIENT, token));

function expectInvalidClient(response: TestResponse): void {
  expectError(response, { status: 401, error: 'invalid_client', hint: undefined });
}

describe('an assertion', () => {
  it.each(['/v2/token', '/v2/customer/revoke', '/oauth2/revoke'])(
    'authenticates a client at %s, in a form and in JSON, and another signature does not',
    async (path) => {
      const stranger = await TestIssuer.start();
      await stranger.stop();
      const send = async (assertion: string, client_id: string, isForm: boolean) => {
        const parameters = { ...asserting(client_id, assertion), token: 'dev:unknown', grant_type: 'refresh_token' };
        const [headers, form] = asForm({ ...parameters, refresh_token: 'dev:unknown' });
        const body = isForm ? form : JSON.stringify({ ...parameters, refresh_token: 'dev:unknown' });
        const isPublic = path.startsWith('/v2/');
        return isPublic
          ? service.post(path, body, isForm ? headers : {})
          : manage(service, 'POST', path, isForm ? headers : {}, body);
      };
      const authenticated = path === '/v2/token' ? [400, 'invalid_grant'] : [200, undefined];
      for (const isForm of [true, false]) {
        for (const [assertion, id] of [
          [await sign(), SIGNING_CLIENT],
          [await platform(), CLUSTER_CLIENT],
        ] as const) {
          const { status, body } = await send(assertion, id, isForm);
          expect([status, body.error]).toEqual(authenticated);
        }
        expectInvalidClient(await send(await sign({}, {}, stranger.keys[0]), SIGNING_CLIENT, isForm));
      }
    },
  );

  it('authenticates a resource server, which sees the tokens of its audiences', async () => {
    const { access_token: token } = await newCustomer(service);
    for (const parameters of [
      asserting(SIGNING_SERVER, await sign(ofServer)),
      asserting(CLUSTER_SERVER, await platform({ sub: API_ACCOUNT })),
    ])
      expect((await introspect(service, { ...parameters, token })).body).toMatchObject({ active: true });
  });

  it('ends a token of the client without the limit of revocations, as a secret does', async () => {
    const limited = await serviceOfTest({
      registry: registryWithKeys(own, cluster),
      environment: { RATE_LIMIT: 'revocations=1/3600' },
    });
    for (let index = 0; index < 3; index++) {
      const { access_token: token } = (await limited.visit(undefined, { client_id: SIGNING_CLIENT })).body;
      const assertion = await ownAssertion(own, limited.clock.now());
      const response = await limited.post('/v2/customer/revoke', { ...asserting(SIGNING_CLIENT, assertion), token });
      expect(response.status).toBe(200);
    }
  });

  it('of a client is valid once, and at one of two processes that get it at once', async () => {
    const assertion = await sign();
    const second = await serviceOfTest({ registry: registryWithKeys(own, cluster), database: service.database });
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        revoke(index % 2 === 0 ? service : second, asserting(SIGNING_CLIENT, assertion)),
      ),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const response of responses.filter(({ status }) => status !== 200)) expectInvalidClient(response);
  });

  it('of a client is used up at one route for all routes, and another client may use the same jti', async () => {
    const jti = 'assertion-1';
    expect((await introspect(service, asserting(SIGNING_SERVER, await sign({ ...ofServer, jti })))).status).toBe(200);
    expect((await asOwn(await sign({ jti }))).status).toBe(200);
    const again = asserting(SIGNING_CLIENT, await sign({ jti }), { grant_type: 'refresh_token', refresh_token: 'x' });
    expectInvalidClient(await service.post('/v2/token', again));
  });

  it('of a platform is valid until it expires', async () => {
    const token = await platform();
    for (let index = 0; index < 3; index++) expect((await asAccount(token)).status).toBe(200);
    service.clock.advance({ seconds: 3_600 });
    expectInvalidClient(await asAccount(token));
  });

  it('is no credential of an entry that was suspended or deleted, or that has got other keys', async () => {
    const registry = registryWithKeys(own, cluster);
    const changing = await serviceOfTest({ registry });
    const send = async () =>
      (await revoke(changing, asserting(SIGNING_CLIENT, await ownAssertion(own, changing.clock.now())))).status;
    const path = `/admin/clients/${SIGNING_CLIENT}`;
    expect(await send()).toBe(200);
    await changing.admin('PATCH', path, { suspended: true });
    await expect.poll(send).toBe(401);
    await changing.admin('PATCH', path, { suspended: false });
    changing.clock.advance({ seconds: 10 });
    await expect.poll(send).toBe(200);
    await changing.admin('PATCH', path, { jwks: { keys: cluster.keys.map(({ jwk }) => jwk) } });
    await expect.poll(send).toBe(401);
    await changing.admin('DELETE', path);
    await expect.poll(send).toBe(401);
  });
});

describe('an own assertion', () => {
  const ofOther = { iss: ACME_BACKEND, sub: ACME_BACKEND };
  it.each<[string, () => object, object?]>([
    ['of another issuer', () => ({ iss: ACME_BACKEND })],
    ['about another client', () => ({ sub: ACME_BACKEND })],
    ['of and about another client', () => ofOther],
    ['of a resource server', () => ofServer],
    ['without an issuer', () => ({ iss: undefined })],
    ['without a subject', () => ({ sub: undefined })],
    ['with a subject that is a list', () => ({ sub: [SIGNING_CLIENT] })],
    ['without an audience', () => ({ aud: undefined })],
    ['for another audience', () => ({ aud: 'https://other.example' })],
    ['for the token endpoint', () => ({ aud: `${AUTH_URL}/v2/token` })],
    ['for two audiences', () => ({ aud: [AUTH_URL, 'https://other.example'] })],
    ['for the audience twice', () => ({ aud: [AUTH_URL, AUTH_URL] })],
    ['without exp', () => ({ exp: undefined })],
    ['that has expired', () => ({ iat: seconds() - 60, exp: seconds() })],
    ['that lives longer than 600 s', () => ({ exp: seconds() + 601 })],
    ['without iat, that lives longer than 600 s from now', () => ({ iat: undefined, exp: seconds() + 660 })],
    ['without jti', () => ({ jti: undefined })],
    ['with an empty jti', () => ({ jti: '' })],
    ['with a long jti', () => ({ jti: 'x'.repeat(256) })],
    ['with a jti that is a number', () => ({ jti: 1 })],
    ['of more than 8 KB', () => ({ more: 'x'.repeat(7_000) })],
    ['of the typ of an access token', () => ({}), { typ: 'at+jwt' }],
    ['of the typ of an assertion for a grant', () => ({}), { typ: 'authorization-grant+jwt' }],
    ['of an unknown key', () => ({}), { kid: 'unknown' }],
    ['with a key in its header', () => ({}), { jwk: { kty: 'oct' } }],
  ])('%s is rejected', async (_, claims, header = {}) => {
    expectInvalidClient(await asOwn(await sign(claims(), header)));
    expect((await asOwn(await sign())).status, 'a valid one').toBe(200);
  });

  it.each<[string, object, object?]>([
    ['with its audience in a list', { aud: [AUTH_URL] }],
    ['without iat', { iat: undefined }],
    ['of no typ', {}, { typ: undefined }],
    ['of the typ of RFC 7523bis', {}, { typ: 'client-authentication+jwt' }],
    ['of the typ with the prefix of a media type', {}, { typ: 'application/client-authentication+JWT' }],
    ['without kid', {}, { kid: undefined }],
  ])('%s is accepted', async (_, claims, header) => {
    expect((await asOwn(await sign(claims, header))).status).toBe(200);
  });

  it.each(['none', 'HS256'])('with the algorithm %s is rejected', async (alg) => {
    const [, claims = '', signature] = (await sign()).split('.');
    const header = Buffer.from(JSON.stringify({ alg, kid: own.keys[0]?.kid, typ: 'JWT' })).toString('base64url');
    const publicKey = new TextEncoder().encode(JSON.stringify(own.keys[0]?.jwk));
    const symmetric = new SignJWT(JSON.parse(Buffer.from(claims, 'base64url').toString()));
    const byHmac = await symmetric.setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).sign(publicKey);
    for (const assertion of [`${header}.${claims}.`, `${header}.${claims}.${signature}`, byHmac])
      expectInvalidClient(await asOwn(assertion));
  });

  it.each(['x', 'e30.e30.AAAA', '..', 'a.b.c.d', `dev:${'x'.repeat(20)}`, '\u0000'])(
    'that is no JWT is rejected: %j',
    async (assertion) => expectInvalidClient(await asOwn(assertion)),
  );

  it('is rejected in another text of its signature, so that one assertion has one text', async () => {
    const assertion = await sign();
    expectInvalidClient(await asOwn(`${assertion}=`));
    expectInvalidClient(await asOwn(` ${assertion}`));
    expect((await asOwn(assertion)).status).toBe(200);
  });

  it('expires by the clock of the service, and may be issued by a clock that is 30 s ahead', async () => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now());
    const now = seconds();
    expect((await asOwn(await sign({ exp: now + 1 }))).status).toBe(200);
    expect((await asOwn(await sign({ iat: now + 30, nbf: now + 30, exp: now + 60 }))).status).toBe(200);
    expectInvalidClient(await asOwn(await sign({ iat: now + 31 })));
    expect((await asOwn(await sign({ exp: now + 600 }))).status).toBe(200);
  });
});

describe('the token of a platform', () => {
  it.each<[string, () => object, object?]>([
    ['of another cluster', () => ({ iss: 'https://other-cluster.example' })],
    ['of the issuer with a slash', () => ({ iss: `${cluster.issuer}/` })],
    ['of an account in another namespace', () => ({ sub: 'system:serviceaccount:other:backend' })],
    ['of another account', () => ({ sub: API_ACCOUNT })],
    ['of an account whose name begins in the same way', () => ({ sub: `${BACKEND_ACCOUNT}-2` })],
    ['of the account in upper case', () => ({ sub: BACKEND_ACCOUNT.toUpperCase() })],
    ['for the API server', () => ({ aud: ['https://kubernetes.default.svc'] })],
    ['for the service and the API server', () => ({ aud: [AUTH_URL, 'https://kubernetes.default.svc'] })],
    ['without exp', () => ({ exp: undefined })],
    ['that lives longer than a day', () => ({ exp: seconds() + 86_401 })],
    ['of the typ of an access token', () => ({}), { typ: 'at+jwt' }],
  ])('%s is rejected', async (_, claims, header = {}) => {
    expectInvalidClient(await asAccount(await platform(claims(), header)));
    expect((await asAccount(await platform())).status, 'a valid one').toBe(200);
  });

  it.each([undefined, 'JWT', 'JOSE'])('is accepted with the typ %s, and without iat and jti', async (typ) => {
    const claims = { iat: undefined, jti: undefined };
    expect((await asAccount(await platform(claims, { typ }))).status).toBe(200);
  });

  it('is rejected if a cluster of the same issuer text has signed it', async () => {
    const other = await TestIssuer.start('RS256');
    await other.stop();
    expectInvalidClient(await asAccount(await accountToken(other, service.clock.now())));
  });

  it('for an audience of the entry is not valid for another one', async () => {
    const registry = registryWithKeys(own, cluster, {
      jwks: { keys: cluster.keys.map(({ jwk }) => jwk) },
      audience: 'cas',
    });
    const other = await serviceOfTest({ registry });
    const send = async (aud: unknown) =>
      (await revoke(other, asserting(CLUSTER_CLIENT, await accountToken(cluster, other.clock.now(), { aud })))).status;
    expect([await send(['cas']), await send('cas'), await send(AUTH_URL), await send(['cas', AUTH_URL])]).toEqual([
      ...[200, 200, 401, 401],
    ]);
  });
});

describe('a request', () => {
  it.each<[string, () => Promise<object>, string]>([
    [
      'without client_id',
      async () => ({ ...asserting('', await sign()), client_id: undefined }),
      'client_id: required with client_assertion',
    ],
    [
      'without the type',
      async () => ({ ...asserting(SIGNING_CLIENT, await sign()), client_assertion_type: undefined }),
      `client_assertion_type: must be ${JWT_ASSERTION}`,
    ],
    [
      'with the type of SAML',
      async () => ({
        ...asserting(SIGNING_CLIENT, await sign()),
        client_assertion_type: JWT_ASSERTION.replace('jwt', 'saml2'),
      }),
      `client_assertion_type: must be ${JWT_ASSERTION}`,
    ],
    ['with the type alone', async () => asserting(SIGNING_CLIENT, undefined), 'client_assertion: required'],
    ['with an empty assertion', async () => asserting(SIGNING_CLIENT, ''), 'client_assertion: must not be empty'],
    [
      'with a list of assertions',
      async () => asserting(SIGNING_CLIENT, [await sign()]),
      'client_assertion: must be a string',
    ],
    [
      'with a secret, too',
      async () => asserting(SIGNING_CLIENT, await sign(), { client_secret: BACKEND_SECRET }),
      'client_assertion: given in addition to client_secret or Authorization',
    ],
  ])('%s gets invalid_request', async (_, parameters, hint) => {
    expectInvalidRequest(await revoke(service, await parameters()), hint);
  });

  it('with an assertion and an Authorization header gets an error, whatever the header has', async () => {
    const parameters = asserting(SIGNING_CLIENT, await sign());
    const hint = 'client_assertion: given in addition to client_secret or Authorization';
    expectInvalidRequest(await revoke(service, parameters, bearer(ADMIN_TOKEN)), hint);
    expectInvalidRequest(await revoke(service, parameters, basic(ACME_BACKEND, BACKEND_SECRET)), hint);
    expectInvalidClient(await revoke(service, parameters, bearer(await sign())));
    expect((await revoke(service, parameters)).status, 'the assertion was not used').toBe(200);
  });

  it('with a repeated assertion gets invalid_request', async () => {
    const [headers, form] = asForm(asserting(SIGNING_CLIENT, await sign(), { token: 'x' }));
    const response = await manage(service, 'POST', '/oauth2/revoke', headers, `${form}&client_assertion=x`);
    expectInvalidRequest(response, 'body: a parameter is given more than once');
  });

  it('with the assertion of one entry and the client_id of another one is rejected', async () => {
    for (const client_id of [CLUSTER_CLIENT, ACME_BACKEND, ACME_SITE, SIGNING_SERVER, 'unknown'])
      expectInvalidClient(await revoke(service, asserting(client_id, await sign())));
    for (const client_id of [SIGNING_CLIENT, CLUSTER_CLIENT, 'unknown'])
      expectInvalidClient(await introspect(service, asserting(client_id, await sign())));
    for (const client_id of [SIGNING_CLIENT, ACME_BACKEND])
      expectInvalidClient(await revoke(service, asserting(client_id, await platform())));
  });

  it('without an assertion does not authenticate an entry with keys, with any secret', async () => {
    for (const secret of ['', 'x', BACKEND_SECRET]) {
      for (const id of [SIGNING_CLIENT, CLUSTER_CLIENT])
        expectInvalidClient(await revoke(service, {}, basic(id, secret)));
      for (const id of [SIGNING_SERVER, CLUSTER_SERVER])
        expectInvalidClient(await introspect(service, {}, basic(id, secret)));
    }
    expectInvalidClient(await service.post('/v2/token', { client_id: SIGNING_CLIENT, grant_type: 'refresh_token' }));
  });
});

it('4 keys of a set are tried for an assertion without kid, and no more', async () => {
  const keyPairs = Array.from({ length: 4 }, () => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const jwks = keyPairs.map(({ publicKey }, index) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid: `other-${index}`,
  }));
  const many = await TestIssuer.start();
  const [key] = many.keys as [TestIssuer['keys'][number]];
  const published = (count: number) => [...jwks.slice(0, count).map((jwk) => ({ ...key, jwk })), key];
  const registry = registryWithKeys(own, cluster, { jwks_uri: many.trust().jwks_uri });
  for (const [count, status] of [
    [3, 200],
    [4, 401],
  ] as const) {
    many.keys = published(count);
    const limited = await serviceOfTest({ registry });
    const token = await many.sign(
      limited.clock.now(),
      { sub: BACKEND_ACCOUNT, aud: AUTH_URL },
      { typ: 'JWT', kid: undefined },
      key,
    );
    expect((await revoke(limited, asserting(CLUSTER_CLIENT, token))).status).toBe(status);
  }
  await many.stop();
});

it('a rejected assertion names its entry in the log', async () => {
  await asOwn(await sign({ aud: 'https://other.example' }));
  await introspect(service, asserting(CLUSTER_SERVER, await platform({ sub: 'other' })));
  await expect.poll(() => logged.lines.join('')).toContain(`"resource_server":"${CLUSTER_SERVER}"`);
  expect(logged.lines.join('')).toContain(`"client_id":"${SIGNING_CLIENT}"`);
});

describe.each(['/oauth2/revocations', '/oauth2/events'])('a POST %s', (path) => {
  it('has the page of the GET, with the credentials in its body', async () => {
    const byGet = await manage(service, 'GET', `${path}?wait=0`, bearer(ADMIN_TOKEN));
    expect(byGet.status).toBe(200);
    const [headers, form] = asForm(asserting(SIGNING_SERVER, await sign(ofServer), { wait: '0' }));
    const asAPost = [
      await manage(service, 'POST', path, headers, form),
      await manage(service, 'POST', path, {}, asserting(CLUSTER_SERVER, await platform({ sub: API_ACCOUNT }))),
      await manage(service, 'POST', path, bearer(ADMIN_TOKEN), {}),
    ];
    for (const { status, body } of asAPost) {
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual(Object.keys(byGet.body));
    }
    const cursor: string = asAPost[0]?.body.cursor;
    const after = asserting(SIGNING_SERVER, await sign(ofServer), { after: cursor, wait: 0 });
    expect((await manage(service, 'POST', path, {}, after)).status).toBe(200);
  });

  it('is rejected with the assertion of a client, or in the query', async () => {
    expectInvalidClient(await manage(service, 'POST', path, {}, asserting(SIGNING_CLIENT, await sign())));
    const [, form] = asForm(asserting(SIGNING_SERVER, await sign(ofServer)));
    expectInvalidClient(await manage(service, 'GET', `${path}?${form}`));
    expectInvalidClient(await manage(service, 'POST', `${path}?${form}`, {}, {}));
  });
});
