import { createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { DataSource, type Repository } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { OrganizationUser } from '../../src/grants/jwt-bearer/organization-user.entity.js';
import { UsedAssertion } from '../../src/grants/jwt-bearer/used-assertion.entity.js';
import { Database } from '../../src/platform/database/database.js';
import { sha256 } from '../../src/platform/secret.js';
import { Purge } from '../../src/purge/purge.js';
import { race, WAYS } from '../../src/testing/race.js';
import { createTestDatabase, onMariadb, type TestDatabase } from '../../src/testing/test-database.js';
import { bearer, claimsOf } from '../support/agents.js';
import { TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import type { ForeignIssuer } from '../support/foreign-issuer.js';
import { identitiesOf } from '../support/identities.js';
import { type LossyProxy, startLossyProxy } from '../support/lossy-proxy.js';
import { manage } from '../support/management.js';
import { times, winnersOf } from '../support/races.js';
import { ACME, ACME_ORIGIN, ACME_SITE, RIVAL, RIVAL_ORIGIN } from '../support/registry.js';
import { type Answer, startTestService, type TestService } from '../support/service.js';
import {
  AUTH_URL,
  bearerBody,
  JWT_BEARER,
  PUBLIC_SIGN_IN,
  RIVAL_SIGN_IN,
  registryWithSignIn,
  SIGN_IN,
  SignInSystem,
  signIn,
} from '../support/sign-in-system.js';
import { expectInvalidGrant, infoStatus } from '../support/transfers.js';

const ADMIN_TOKEN = 'admin-token-of-the-tests';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const LINK = { link: 'browser' };
const FROM_PAGE = { origin: ACME_ORIGIN };
const DAY = 86_400;

let acme: SignInSystem;
let rival: SignInSystem;
let service: TestService;
/** A second process on the same database. */
let other: TestService;
let database: TestDatabase;
beforeAll(async () => {
  acme = await SignInSystem.start();
  rival = await SignInSystem.start();
  for (const algorithm of ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'RS512', 'PS384', 'ES512'])
    await acme.issuer.addKey(algorithm);
  database = await createTestDatabase();
  const registry = registryWithSignIn({
    [ACME]: acme.settings(),
    [RIVAL]: { issuer: 'https://rival.example', jwks: rival.jwks },
  });
  other = await startTestService({ registry, database });
  service = await startTestService({ registry, database, environment: { ADMIN_TOKEN } });
});
afterEach(() => {
  vi.restoreAllMocks();
  service.clock.reset();
  other.clock.reset();
});
afterAll(async () => {
  await other?.stop();
  await service?.stop();
  await database?.remove();
  await acme?.issuer.goAway();
  await rival?.issuer.goAway();
});

const rowsOf = <Entity extends object>(entity: new () => Entity): Repository<Entity> =>
  service.application.get(DataSource).getRepository(entity);
const seconds = () => service.clock.seconds();
/** A user whom no other test has met. */
const newUser = () => `user-${randomUUID()}`;
const assert = (claims: object = {}, header: object = {}, key?: ForeignIssuer['keys'][number]) =>
  acme.assert(service.clock.now(), claims, header, key);
const signInAs = async (sub: string, more: object = {}, headers = {}, at = service) =>
  signIn(at, await assert({ sub }), more, headers);
const linkedEvents = () => service.audit.filter(({ event }) => event === 'identity.linked');
const erase = (entityId: string) => manage(service, 'DELETE', `/admin/identities/${entityId}`, bearer(ADMIN_TOKEN));
const lookUp = (entityId: string) => manage(service, 'GET', `/admin/identities/${entityId}`, bearer(ADMIN_TOKEN));

/** Insists that a request proves nothing, makes nobody, and that the log is told why. */
async function expectRefused(send: () => Promise<Answer>): Promise<void> {
  const before = await identitiesOf(service).count();
  expectInvalidGrant(await send());
  expect(await identitiesOf(service).count()).toBe(before);
}

describe('an assertion of the organization’s own sign-in system', () => {
  it('gives a customer token of the client and organization, with the fields of every answer', async () => {
    const { status, body } = await signInAs(newUser());
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        access_token: expect.any(String),
        entity_id: expect.any(String),
        expires_in: 28_800,
        token_type: 'Bearer',
        client_id: SIGN_IN,
        organization_id: ACME,
      },
    });
    const claims = claimsOf(body.access_token);
    expect(claims).toMatchObject({
      sub: body.entity_id,
      aud: 'customer-api',
      client_id: SIGN_IN,
      organization_id: ACME,
    });
    expect(await infoStatus(service, body.access_token)).toBe(200);
  });

  it('gives a user the same entity_id every time, on every process, and other users others', async () => {
    const user = newUser();
    const first = (await signInAs(user)).body.entity_id;
    expect((await signInAs(user, {}, {}, other)).body.entity_id).toBe(first);
    expect((await signInAs(newUser())).body.entity_id).not.toBe(first);
  });

  it('sets no cookies', async () => {
    expect((await signInAs(newUser(), LINK, FROM_PAGE)).cookies).toEqual([]);
  });

  it('may come as a form, as libraries send it', async () => {
    const user = newUser();
    const { entity_id } = (await signInAs(user)).body;
    const form = new URLSearchParams(bearerBody(await assert({ sub: user })) as Record<string, string>);
    expect((await service.post(TOKEN, `${form}`, FORM)).body.entity_id).toBe(entity_id);
  });

  it('is refused when it comes twice in one request', async () => {
    const assertion = await assert({ sub: newUser() });
    const form = new URLSearchParams(bearerBody(assertion) as Record<string, string>);
    form.append('assertion', assertion);
    const hint = 'body: a parameter is given more than once';
    expectInvalidRequest(await service.post(TOKEN, `${form}`, FORM), hint);
    const json = JSON.stringify(bearerBody(assertion)).replace('{', `{"assertion":"${assertion}",`);
    expectInvalidRequest(await service.post(TOKEN, json), hint);
    expect((await signIn(service, assertion)).status).toBe(200);
  });

  it.each<[string, unknown]>([
    ['missing', undefined],
    ['a number', 7],
    ['a list', ['x']],
    ['null', null],
    ['longer than 8192 characters', 'x'.repeat(8193)],
  ])('is an invalid parameter when it is %s', async (_, assertion) => {
    expectInvalidRequest(await signIn(service, assertion), /^assertion: /);
  });

  it('is too large beyond 16 KiB', async () => {
    const answer = await signIn(service, 'x'.repeat(17_000));
    expectError(answer, { status: 413, error: 'payload_too_large', hint: 'body: at most 16 KiB' });
  });

  it.each(['', 'x', 'a.b', 'a.b.c', 'a.b.c.d', '..', '....', 'e30.e30.e30', '\u0000', 'é.é.é'])(
    'proves nothing when it is no JWT: %j',
    (assertion) => expectRefused(() => signIn(service, assertion)),
  );

  it.each(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'])('may be signed by %s', async (algorithm) => {
    const key = acme.issuer.keys.find(({ alg }) => alg === algorithm);
    expect((await signIn(service, await assert({ sub: newUser() }, {}, key))).status).toBe(200);
  });

  it.each(['RS512', 'PS384', 'ES512'])(
    'proves nothing when it is signed by %s, which is not one of ours',
    (algorithm) => {
      const key = acme.issuer.keys.find(({ alg }) => alg === algorithm);
      return expectRefused(async () => signIn(service, await assert({ sub: newUser() }, {}, key)));
    },
  );
});

describe('what an assertion says of itself', () => {
  it.each<[string, () => object]>([
    ['another issuer', () => ({ iss: 'https://evil.example' })],
    ['the issuer with a slash', () => ({ iss: 'https://idp.example/' })],
    ['the issuer in capitals', () => ({ iss: 'https://IDP.example' })],
    ['a list of issuers', () => ({ iss: ['https://idp.example'] })],
    ['no iss', () => ({ iss: undefined })],
    ['another audience', () => ({ aud: 'https://other.example' })],
    ['other audiences', () => ({ aud: ['https://other.example', `${AUTH_URL}/`] })],
    ['an empty audience', () => ({ aud: [] })],
    ['no aud', () => ({ aud: undefined })],
    ['no exp', () => ({ exp: undefined })],
    ['exp as text', () => ({ exp: String(seconds() + 60) })],
    ['an exp of now', () => ({ exp: seconds() })],
    ['an exp of a second ago', () => ({ exp: seconds() - 1 })],
    ['an exp more than 10 minutes ahead', () => ({ exp: seconds() + 605 })],
    ['an endless exp', () => ({ exp: 1e300 })],
    ['nbf beyond the skew', () => ({ nbf: seconds() + 35 })],
    ['iat beyond the skew', () => ({ iat: seconds() + 35 })],
    ['iat as text', () => ({ iat: 'now' })],
    ['no sub', () => ({ sub: undefined })],
    ['an empty sub', () => ({ sub: '' })],
    ['a sub that is a number', () => ({ sub: 7 })],
    ['a sub of 256 characters', () => ({ sub: 'x'.repeat(256) })],
    ['a sub with a control character', () => ({ sub: 'a\u0000b' })],
    ['half a character as sub', () => ({ sub: 'a\ud800' })],
    ['no jti', () => ({ jti: undefined })],
    ['an empty jti', () => ({ jti: '' })],
    ['a jti that is a number', () => ({ jti: 7 })],
    ['a jti of 256 characters', () => ({ jti: 'x'.repeat(256) })],
    ['another client', () => ({ client_id: ACME_SITE })],
    ['another organization', () => ({ organization_id: RIVAL })],
  ])('proves nothing: %s', (_, claims) => expectRefused(async () => signIn(service, await assert(claims()))));

  it.each<[string, () => object]>([
    ['our address', () => ({ aud: AUTH_URL })],
    ['the token endpoint', () => ({ aud: `${AUTH_URL}/v2/customer/token` })],
    ['one of several audiences', () => ({ aud: ['https://other.example', AUTH_URL] })],
    ['an exp almost 10 minutes ahead', () => ({ exp: seconds() + 595 })],
    ['nbf and iat within the skew', () => ({ nbf: seconds() + 25, iat: seconds() + 25 })],
    ['no iat', () => ({ iat: undefined })],
    ['a sub of 255 characters', () => ({ sub: randomUUID().padEnd(255, 'x') })],
    ['this client and this organization', () => ({ client_id: SIGN_IN, organization_id: ACME })],
  ])('is right: %s', async (_, claims) => {
    expect((await signIn(service, await assert({ sub: newUser(), ...claims() }))).status).toBe(200);
  });

  it('tells the log why it proves nothing, and the caller only that', async () => {
    const answer = await signIn(service, await assert({ aud: 'https://other.example' }));
    expectInvalidGrant(answer);
    expect(answer.text).not.toMatch(/aud/);
  });
});

describe('the header of an assertion', () => {
  const ours = () => acme.issuer.keys[0] as ForeignIssuer['keys'][number];
  const segment = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const payload = () =>
    segment({
      ...{ iss: acme.issuer.issuer, sub: newUser(), aud: AUTH_URL, jti: randomUUID(), exp: seconds() + 60 },
    });

  it('cannot say that there is no signature', async () => {
    for (const alg of ['none', 'None', 'NONE', '']) {
      const unsigned = `${segment({ alg, typ: 'JWT', kid: ours().kid })}.${payload()}.`;
      await expectRefused(() => signIn(service, unsigned));
      await expectRefused(() => signIn(service, `${unsigned}AAAA`));
    }
  });

  it('cannot make a secret of the public key', async () => {
    for (const secret of [JSON.stringify(ours().jwk), acme.jwks.keys[0] && Buffer.from(JSON.stringify(acme.jwks))]) {
      const signed = `${segment({ alg: 'HS256', typ: 'JWT', kid: ours().kid })}.${payload()}`;
      const mac = createHmac('sha256', secret as string)
        .update(signed)
        .digest('base64url');
      await expectRefused(() => signIn(service, `${signed}.${mac}`));
    }
  });

  it('cannot bring a key, or say where one is', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'mine', alg: 'ES256', use: 'sig' };
    const evil = await SignInSystem.start();
    const jku = evil.settings().jwks_uri;
    for (const brought of [{ jwk }, { jku }, { x5u: jku }, { x5c: ['AAAA'] }]) {
      for (const kid of ['mine', ours().kid, undefined]) {
        const signed = `${segment({ alg: 'ES256', typ: 'JWT', kid, ...brought })}.${payload()}`;
        const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
        await expectRefused(() => signIn(service, `${signed}.${signature.toString('base64url')}`));
      }
      await expectRefused(async () => signIn(service, await assert({ sub: newUser() }, brought)));
    }
    expect(evil.issuer.requests).toBe(0);
    await evil.issuer.goAway();
  });

  it('cannot name rules that nobody knows', async () => {
    await expectRefused(async () => signIn(service, await assert({}, { crit: ['x'], x: 1 })));
    await expectRefused(async () => signIn(service, await assert({}, { b64: true })));
  });

  it.each(['at+jwt', 'dpop+jwt', 'logout+jwt', 'application/at+jwt', 7])('cannot be that of another JWT: %s', (typ) =>
    expectRefused(async () => signIn(service, await assert({ sub: newUser() }, { typ }))),
  );

  it.each(['JWT', 'jwt', 'application/jwt', 'authorization-grant+jwt', undefined])('may be of type %s', async (typ) => {
    expect((await signIn(service, await assert({ sub: newUser() }, { typ }))).status).toBe(200);
  });

  it('must name the key that has signed, where there are several', async () => {
    const second = acme.issuer.keys[1] as ForeignIssuer['keys'][number];
    expect((await signIn(service, await assert({ sub: newUser() }, {}, second))).status).toBe(200);
    await expectRefused(async () => signIn(service, await assert({}, { kid: second.kid }, ours())));
    await expectRefused(async () => signIn(service, await assert({}, { kid: ours().kid }, second)));
    for (const kid of [undefined, 7, '', '../keys', 'nobody'])
      await expectRefused(async () => signIn(service, await assert({}, { kid }, ours())));
  });
});

describe('an assertion is used once', () => {
  it('and refused when it comes again, to whichever process', async () => {
    const assertion = await assert({ sub: newUser() });
    expect((await signIn(service, assertion)).status).toBe(200);
    for (const at of [service, other]) await expectRefused(() => signIn(at, assertion));
  });

  it('and the token that it gave lives on when it comes again', async () => {
    const assertion = await assert({ sub: newUser() });
    const { body } = await signIn(service, assertion);
    await expectRefused(() => signIn(service, assertion));
    expect(await infoStatus(service, body.access_token)).toBe(200);
  });

  it('by its jti, whatever else has changed', async () => {
    const jti = randomUUID();
    expect((await signIn(service, await assert({ sub: newUser(), jti }))).status).toBe(200);
    await expectRefused(async () => signIn(service, await assert({ sub: newUser(), jti })));
    for (const another of [jti.toUpperCase(), `${jti} `])
      expect((await signIn(service, await assert({ sub: newUser(), jti: another }))).status).toBe(200);
  });

  it('by its jti and its issuer: those of another issuer are others', async () => {
    const jti = randomUUID();
    expect((await signIn(service, await assert({ sub: newUser(), jti }))).status).toBe(200);
    expect((await signInRival({ jti })).status).toBe(200);
  });

  it(`also when it is raced ${WAYS} ways over two processes`, async () => {
    for (let round = 0; round < 5; round++) {
      const text = JSON.stringify(bearerBody(await assert({ sub: newUser() })));
      const answers = await race([service, other], TOKEN, text);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(WAYS - 1).fill(400)]);
      const [winner] = winnersOf(answers);
      expect(await infoStatus(service, winner?.body.access_token)).toBe(200);
    }
  });

  it('and what failed before has not used it', async () => {
    const assertion = await assert({ sub: newUser() });
    await expectRefused(() => signIn(service, `${assertion.slice(0, -4)}AAAA`));
    const strange = await signIn(service, assertion, { client_id: PUBLIC_SIGN_IN, organization_id: RIVAL });
    expectInvalidGrant(strange);
    expect((await signIn(service, assertion)).status).toBe(200);
  });

  it('and is remembered for as long as it could come again, then purged', async () => {
    const purge = async () => (await service.application.get(Purge).run())?.used_assertion;
    await rowsOf(UsedAssertion).clear();
    const assertion = await assert({ sub: newUser(), exp: seconds() + 60 });
    expect((await signIn(service, assertion)).status).toBe(200);
    service.clock.move(58);
    await expectRefused(() => signIn(service, assertion));
    service.clock.move(20);
    expect(await purge()).toBe(0);
    service.clock.move(20);
    expect(await purge()).toBe(1);
    await expectRefused(() => signIn(service, assertion));
  });

  it('and is not written down, nor is its user', async () => {
    const user = newUser();
    const assertion = await assert({ sub: user, jti: `jti-of-${user}` });
    await signIn(service, assertion);
    const rows = JSON.stringify([await rowsOf(UsedAssertion).find(), await rowsOf(OrganizationUser).find()]);
    expect(rows).not.toContain(user);
  });
});

describe('a user', () => {
  it('is known by every byte of its id', async () => {
    const id = randomUUID();
    const ids = [
      'user',
      'USER',
      'User',
      'user ',
      ' user',
      'us\u00e9r',
      'us\u0065\u0301r',
      'user\u00a0',
      'us\u200ber',
      'usеr',
      'üser',
    ];
    const customers = new Set<string>();
    for (const each of ids) customers.add((await signInAs(`${each}${id}`)).body.entity_id);
    for (const each of ids) customers.add((await signInAs(`${id}${each}`)).body.entity_id);
    expect(customers.size).toBe(2 * ids.length);
    expect([...customers]).toContain((await signInAs(`user ${id}`)).body.entity_id);
  });

  it('of one organization is nobody to another that calls its user the same', async () => {
    const sub = newUser();
    const [ours, theirs] = [await signInAs(sub), await signInRival({ sub })];
    expect(theirs.body.organization_id).toBe(RIVAL);
    expect(theirs.body.entity_id).not.toBe(ours.body.entity_id);
  });

  it(`that signs in for the first time ${WAYS} ways at once, at two processes, is one customer`, async () => {
    for (let round = 0; round < 3; round++) {
      const sub = newUser();
      const before = await identitiesOf(service).count();
      const answers = await times(WAYS, (index) => signInAs(sub, {}, {}, index % 2 ? service : other));
      expect(answers.map(({ status }) => status)).toEqual(Array(WAYS).fill(200));
      expect(new Set(answers.map(({ body }) => body.entity_id)).size).toBe(1);
      expect(await identitiesOf(service).count()).toBe(before + 1);
    }
  });

  it('that is known costs one INSERT and one SELECT', async () => {
    const sub = newUser();
    await signInAs(sub);
    const sent = service.application.get(Database);
    const before = sent.statements;
    await signInAs(sub);
    expect(sent.statements - before).toBe(2);
  });

  it('is told to the audit once as a new customer, and with each token', async () => {
    const sub = newUser();
    service.audit.length = 0;
    const { body } = await signInAs(sub);
    await signInAs(sub);
    const told = service.audit.map(({ event, grant, clientId, organizationId, subject }) => [
      event,
      grant,
      clientId,
      organizationId,
      subject?.id,
    ]);
    const of = [JWT_BEARER, SIGN_IN, ACME, body.entity_id];
    expect(told).toEqual([
      ['identity.created', ...of],
      ['token.issued', ...of],
      ['token.issued', ...of],
    ]);
  });

  it.each<[string, RegExp, 'before' | 'after']>([
    ['before its customer is made', /INTO customer_identity/, 'before'],
    ['after its customer is made', /INTO customer_identity/, 'after'],
    ['before it is settled', /SET settled_at/, 'before'],
    ['before it has a customer', /INTO organization_user/, 'before'],
  ])('whose first sign-in dies %s is one customer at the next', async (_, pattern, moment) => {
    const sub = newUser();
    const before = await identitiesOf(service).count();
    dieAt(pattern, moment);
    expect((await signInAs(sub)).status).toBe(500);
    vi.restoreAllMocks();
    const [one, two] = [await signInAs(sub), await signInAs(sub, {}, {}, other)];
    expect(one.status).toBe(200);
    expect(two.body.entity_id).toBe(one.body.entity_id);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    expect(await infoStatus(service, one.body.access_token)).toBe(200);
  });
});

describe('an erased customer', () => {
  it('takes with it what was known of the user, who is a new customer from then on', async () => {
    const sub = newUser();
    const { entity_id, access_token } = (await signInAs(sub)).body;
    expect((await erase(entity_id)).status).toBe(200);
    expect(await rowsOf(OrganizationUser).countBy({ customerId: entity_id })).toBe(0);
    expect(await infoStatus(service, access_token)).toBe(401);
    const again = (await signInAs(sub)).body;
    expect(again.entity_id).not.toBe(entity_id);
    expect(await infoStatus(service, again.access_token)).toBe(200);
    expect((await signInAs(sub)).body.entity_id).toBe(again.entity_id);
  });

  it('is not erased by halves: while what is known of the user cannot go, the customer stays', async () => {
    const sub = newUser();
    const { entity_id } = (await signInAs(sub)).body;
    dieAt(/DELETE FROM organization_user/, 'before');
    expect((await erase(entity_id)).status).toBe(500);
    vi.restoreAllMocks();
    expect((await erase(entity_id)).status).toBe(200);
    expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
  });

  it('is not left to a user to whom it was given while it was erased', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const sub = newUser();
    const sent = service.application.get(Database);
    const change = sent.change.bind(sent);
    let given: Answer | undefined;
    vi.spyOn(sent, 'change').mockImplementation(async (sql, parameters) => {
      if (/SET organization_id = NULL/.test(sql))
        given = await signInAs(sub, LINK, { ...FROM_PAGE, cookie: browser.cookie }, other);
      return change(sql, parameters);
    });
    expect((await erase(entity_id)).status).toBe(200);
    vi.restoreAllMocks();
    expect(given?.body.entity_id).toBe(entity_id);
    expect(await infoStatus(service, given?.body.access_token)).toBe(401);
    expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
    const after = (await signInAs(sub)).body;
    expect(after.entity_id).not.toBe(entity_id);
    expect(await infoStatus(service, after.access_token)).toBe(200);
  });

  it('leaves nothing when the user signs in at that very moment', async () => {
    for (let round = 0; round < 10; round++) {
      const sub = newUser();
      const { entity_id } = (await signInAs(sub)).body;
      const [erased, ...answers] = await Promise.all([
        erase(entity_id),
        ...Array.from({ length: 8 }, (_, index) => signInAs(sub, {}, {}, index % 2 ? service : other)),
      ]);
      expect(erased.status).toBe(200);
      for (const { status } of answers) expect(status).toBe(200);
      const after = (await signInAs(sub)).body;
      expect(after.entity_id).not.toBe(entity_id);
      expect(await infoStatus(service, after.access_token)).toBe(200);
      expect(await rowsOf(OrganizationUser).countBy({ entityId: entity_id })).toBe(0);
      expect(new Set(answers.map(({ body }) => body.entity_id).filter((id) => id !== entity_id)).size).toBeLessThan(2);
    }
  });
});

describe('a browser that is linked', () => {
  /** A browser with a customer of its own. */
  const newBrowser = async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    return { browser, entityId: entity_id as string, headers: { ...FROM_PAGE, cookie: browser.cookie as string } };
  };
  const linked = (sub: string, headers: object, at = service) => signInAs(sub, LINK, { ...headers }, at);

  it('gives its customer to a user who has none: the same entity_id goes on, everywhere', async () => {
    const { browser, entityId, headers } = await newBrowser();
    const sub = newUser();
    service.audit.length = 0;
    expect((await linked(sub, headers)).body.entity_id).toBe(entityId);
    expect((await signInAs(sub)).body.entity_id).toBe(entityId);
    expect((await browser.visit()).body.entity_id).toBe(entityId);
    await linked(sub, headers);
    expect(linkedEvents()).toMatchObject([
      { subject: { id: entityId }, details: { linked: entityId }, organizationId: ACME },
    ]);
  });

  it('is remembered with the customer that its user has already, whose token it is', async () => {
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

  it('is not linked unless the request says so', async () => {
    const { headers, entityId } = await newBrowser();
    expect((await signInAs(newUser(), {}, headers)).body.entity_id).not.toBe(entityId);
    expectInvalidRequest(await signInAs(newUser(), { link: 'other' }, headers), /^link: /);
    expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
  });

  it('that belongs to a user is never given to another, nor linked to one', async () => {
    const { headers, entityId } = await newBrowser();
    const [first, second, third] = [newUser(), newUser(), newUser()];
    const thirds = (await signInAs(third)).body.entity_id;
    expect((await linked(first, headers)).body.entity_id).toBe(entityId);
    const seconds = (await linked(second, headers)).body.entity_id;
    expect(seconds).not.toBe(entityId);
    expect((await linked(third, headers)).body.entity_id).toBe(thirds);
    expect((await lookUp(thirds)).body).not.toHaveProperty('linked_ids');
    expect((await linked(first, headers)).body.entity_id).toBe(entityId);
  });

  it('that was linked to a user’s customer is not given to another user, either', async () => {
    const { headers, entityId } = await newBrowser();
    const [first, second] = [newUser(), newUser()];
    const customer = (await signInAs(first)).body.entity_id;
    await linked(first, headers);
    expect((await linked(second, headers)).body.entity_id).not.toBe(entityId);
    expect((await lookUp(customer)).body.linked_ids).toEqual([entityId]);
  });

  it(`by ${WAYS} users at once belongs to one of them`, async () => {
    for (let round = 0; round < 3; round++) {
      const { headers, entityId } = await newBrowser();
      const known = await times(WAYS / 2, async () => {
        const sub = newUser();
        await signInAs(sub);
        return sub;
      });
      const users = [...known, ...Array.from({ length: WAYS / 2 }, newUser)];
      service.audit.length = 0;
      other.audit.length = 0;
      const answers = await times(WAYS, (index) =>
        linked(users[index] as string, headers, index % 2 ? service : other),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(WAYS).fill(200));
      expect(new Set(answers.map(({ body }) => body.entity_id)).size).toBe(WAYS);
      expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(1);
      const told = [...service.audit, ...other.audit].filter(({ event }) => event === 'identity.linked');
      expect(told).toHaveLength(1);
    }
  });

  it(`by one user ${WAYS} ways at once is linked once`, async () => {
    const { headers, entityId } = await newBrowser();
    const sub = newUser();
    service.audit.length = 0;
    const answers = await times(WAYS, () => linked(sub, headers));
    expect(new Set(answers.map(({ body }) => body.entity_id))).toEqual(new Set([entityId]));
    expect(linkedEvents()).toHaveLength(1);
  });

  it('two of them, by one new user at once, are that user’s customer and its history', async () => {
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
  ])('with %s is no customer to be linked', async (_, headers) => {
    const before = await rowsOf(OrganizationUser).count();
    service.audit.length = 0;
    expect((await linked(newUser(), { ...FROM_PAGE, ...(await headers()) })).status).toBe(200);
    expect(linkedEvents()).toEqual([]);
    expect(await rowsOf(OrganizationUser).count()).toBe(before + 1);
  });

  it('must show from which page it comes, and that must be one of the client’s', async () => {
    const { headers, entityId } = await newBrowser();
    const { cookie } = headers;
    expectInvalidRequest(await linked(newUser(), { cookie }), 'link: needs an Origin');
    for (const origin of [RIVAL_ORIGIN, 'null', 'https://evil.example'])
      expectInvalidRequest(await linked(newUser(), { cookie, origin }), "Origin: not one of the client's");
    expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
  });

  it('is not linked by a used assertion', async () => {
    const assertion = await assert({ sub: newUser() });
    await signIn(service, assertion);
    const { headers, entityId } = await newBrowser();
    await expectRefused(() => signIn(service, assertion, LINK, headers));
    expect(await rowsOf(OrganizationUser).countBy({ entityId })).toBe(0);
  });

  it('is not linked in an organization that does not want it', async () => {
    const sent = { ...LINK, organization_id: RIVAL, client_id: RIVAL_SIGN_IN };
    const answer = await signIn(service, await assertRival({}), sent);
    expectError(answer, { status: 400, error: 'unauthorized_client', hint: 'link: not for this organization' });
  });

  it('forgets its user when the user’s customer is erased, and the other way round', async () => {
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

  it('is a new customer when the one it gave to its user was erased', async () => {
    const { browser, headers, entityId } = await newBrowser();
    const sub = newUser();
    await linked(sub, headers);
    await erase(entityId);
    const again = (await linked(sub, headers)).body.entity_id;
    expect(again).not.toBe(entityId);
    expect((await browser.visit()).body.entity_id).not.toBe(entityId);
  });

  it('leaves its customer to the user when it has not been seen for two years', async () => {
    const { headers, entityId } = await newBrowser();
    const idle = await newBrowser();
    const sub = newUser();
    await linked(sub, headers);
    service.clock.move(800 * DAY);
    await service.application.get(Purge).run();
    expect(await identitiesOf(service).countBy({ entityId: idle.entityId })).toBe(0);
    expect(await identitiesOf(service).countBy({ entityId })).toBe(1);
    expect((await signInAs(sub)).body.entity_id).toBe(entityId);
  });
});

describe('who may use the grant', () => {
  it('a client that lists it, and not one that lists nothing', async () => {
    const answer = await signInAs(newUser(), { client_id: ACME_SITE });
    expectError(answer, { status: 400, error: 'unauthorized_client', hint: 'grant_type: not for this client' });
  });

  it('not at the address of a group', async () => {
    const answer = await service.post(`/v2/customer/${ACME}/sales/token`, bearerBody(await assert()));
    expectInvalidRequest(answer, 'grant_type: not at the address of a group');
  });

  it('an organization that has a sign-in system', async () => {
    const organization_id = 'b0f8b6b0-5b0a-4a7e-8a43-3c6a4a1c0d22';
    const answer = await signInAs(newUser(), { client_id: PUBLIC_SIGN_IN, organization_id });
    expectError(answer, { status: 400, error: 'unauthorized_client', hint: 'grant_type: not for this organization' });
    const unknown = await signInAs(newUser(), { client_id: PUBLIC_SIGN_IN, organization_id: randomUUID() });
    expectInvalidRequest(unknown, 'organization_id: unknown');
  });

  it('the organization’s own users, and not another’s', async () => {
    const foreign = { client_id: PUBLIC_SIGN_IN, organization_id: RIVAL };
    await expectRefused(() => signInAs(newUser(), foreign));
    await expectRefused(async () => signIn(service, await assertRival({})));
    await expectRefused(async () => signIn(service, await assertRival({ iss: acme.issuer.issuer })));
    await expectRefused(async () => signIn(service, await assert({ iss: 'https://rival.example' }), foreign));
  });

  it('pages of the client', async () => {
    expect((await signInAs(newUser(), {}, FROM_PAGE)).status).toBe(200);
    const answer = await signInAs(newUser(), {}, { origin: RIVAL_ORIGIN });
    expectInvalidRequest(answer, "Origin: not one of the client's");
  });
});

describe.runIf(onMariadb)('an answer that is lost on its way from the database', () => {
  let proxy: LossyProxy;
  let remote: TestService;
  beforeAll(async () => {
    proxy = await startLossyProxy(database.url);
    const far = { ...database, url: proxy.through(database.url) };
    remote = await startTestService({ registry: registryWithSignIn({ [ACME]: acme.settings() }), database: far });
  });
  afterAll(async () => {
    await remote?.stop();
    await proxy?.close();
  });
  const hashOf = (...texts: string[]) => sha256(JSON.stringify(texts));

  // the statements that name a text, in their order
  it.each<[string, (sub: string, jti: string) => string, number]>([
    ['to the use of the assertion', (_, jti) => hashOf(acme.issuer.issuer, jti), 1],
    ['to the row of the user', (sub) => hashOf(ACME, sub), 2],
    ['to the making of the customer', () => ACME, 4],
    ['to its being settled', (sub) => hashOf(ACME, sub), 3],
  ])('%s refuses nobody, and makes nobody twice', async (_, textOf, which) => {
    const [sub, jti] = [newUser(), randomUUID()];
    const [before, lost] = [await identitiesOf(service).count(), proxy.lost];
    proxy.loseAnswers(textOf(sub, jti), [which]);
    const assertion = await assert({ sub, jti });
    const answer = await signIn(remote, assertion);
    expect({ status: answer.status, lost: proxy.lost - lost }).toEqual({ status: 200, lost: 1 });
    expect((await signInAs(sub)).body.entity_id).toBe(answer.body.entity_id);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    await expectRefused(() => signIn(remote, assertion));
  });

  it.each([false, true])('to a link is told once, of a user who has a customer: %s', async (isKnown) => {
    const sub = newUser();
    if (isKnown) await signInAs(sub);
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const lost = proxy.lost;
    remote.audit.length = 0;
    // it is recognised, looked for among users' customers, and linked
    proxy.loseAnswers(entity_id, [3]);
    const headers = { ...FROM_PAGE, cookie: browser.cookie as string };
    const answer = await signInAs(sub, LINK, headers, remote);
    expect({ status: answer.status, lost: proxy.lost - lost }).toEqual({ status: 200, lost: 1 });
    expect(remote.audit.filter(({ event }) => event === 'identity.linked')).toHaveLength(1);
  });
});

function assertRival(claims: object): Promise<string> {
  return rival.assert(service.clock.now(), { iss: 'https://rival.example', sub: newUser(), ...claims });
}

async function signInRival(claims: object): Promise<Answer> {
  return signIn(service, await assertRival(claims), { client_id: RIVAL_SIGN_IN, organization_id: RIVAL });
}

/** The process dies before or after a statement: nothing comes after it. */
function dieAt(pattern: RegExp, moment: 'before' | 'after'): void {
  const sent = service.application.get(Database);
  const change = sent.change.bind(sent);
  vi.spyOn(sent, 'change').mockImplementation(async (sql, parameters) => {
    if (!pattern.test(sql)) return change(sql, parameters);
    if (moment === 'after') await change(sql, parameters);
    throw new Error('died');
  });
}
