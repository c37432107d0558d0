import { createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { describeGrant } from '@customer-authorization/conformance-kit';
import { afterAll, describe, expect, it } from 'vitest';
import { CustomerKey } from '../../src/customer/customer-key.entity.js';
import { JwtBearerGrant } from '../../src/grants/jwt-bearer/jwt-bearer.grant.js';
import { ProofUse } from '../../src/redemption/proof-use.entity.js';
import {
  AUTH_URL,
  JWT_BEARER,
  PUBLIC_SIGN_IN,
  RIVAL_SIGN_IN,
  registryWithSignIn,
  SIGN_IN,
  SignInSystem,
  signIn,
} from '../support/assertion-issuer.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidGrant, expectInvalidRequest, INVALID_MESSAGE } from '../support/expect-error.js';
import { purge } from '../support/operator-commands.js';
import {
  acme,
  assert,
  assertRival,
  expectInvalidGrantWithoutCustomer,
  FROM_PAGE,
  newUser,
  other,
  rival,
  seconds,
  service,
  signInAs,
  signInRival,
  startSignInServices,
} from '../support/sign-in-services.js';
import { withTwin } from '../support/signature-twin.js';
import type { TestIssuer } from '../support/test-issuer.js';
import { ACME, ACME_SITE, RIVAL } from '../support/test-registry.js';
import { serviceOfTest } from '../support/use-service.js';

/** The sign-in system of the organizations in the conformance kit. */
const KIT = await SignInSystem.start();
afterAll(() => KIT.issuer.stop());

startSignInServices();

describeGrant(JwtBearerGrant, {
  settings: { organization: { issuer: 'https://idp.example', jwks: KIT.jwks } },
  valid: async ({ service: { clock } }) => ({ assertion: await KIT.assert(clock.now()) }),
  anyOrganization: true, // KIT signs for both organizations
});

describe('an assertion of the organization’s sign-in system', () => {
  it('gives a user the same entity_id in every process, and another user another entity_id', async () => {
    const user = newUser();
    const first = (await signInAs(user)).body.entity_id;
    expect((await signInAs(user, {}, {}, other)).body.entity_id).toBe(first);
    expect((await signInAs(newUser())).body.entity_id).not.toBe(first);
    const inRival = (await signInRival({ sub: user })).body;
    expect(inRival.organization_id).toBe(RIVAL);
    expect(inRival.entity_id, 'the same sub in another organization').not.toBe(first);
  });

  it('cannot be used again with the second valid signature of ECDSA', async () => {
    const [assertion, unused] = [await assert({ sub: newUser() }), await assert({ sub: newUser() })];
    expect((await signIn(service, withTwin(unused))).status).toBe(200);
    expect((await signIn(service, assertion)).status).toBe(200);
    expectInvalidGrant(await signIn(service, withTwin(assertion)));
  });

  it('sets no cookies', async () => {
    expect((await signInAs(newUser(), {}, FROM_PAGE)).cookies).toEqual([]);
  });

  it.each(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'])('may be signed with %s', async (algorithm) => {
    const key = acme.issuer.keys.find(({ alg }) => alg === algorithm);
    expect((await signIn(service, await assert({ sub: newUser() }, {}, key))).status).toBe(200);
  });

  it.each(['RS512', 'PS384', 'ES512'])(
    'is rejected when it is signed with %s, which the service does not support',
    (algorithm) => {
      const key = acme.issuer.keys.find(({ alg }) => alg === algorithm);
      return expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert({ sub: newUser() }, {}, key)));
    },
  );
});

describe('a form with an assertion', () => {
  const form = async (more = '') => {
    const parameters = {
      grant_type: JWT_BEARER,
      client_id: SIGN_IN,
      organization_id: ACME,
      assertion: await assert({}),
    };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return service.post(TOKEN, `${new URLSearchParams(parameters)}${more}`, headers);
  };

  it('gets a token, and its empty optional parameters count as left out', async () => {
    expect((await form('&remember=')).status).toBe(200);
  });

  it('is refused if its assertion is empty, and by the cookie grant', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const empty = new URLSearchParams({ grant_type: JWT_BEARER, client_id: SIGN_IN, assertion: '' });
    expectInvalidRequest(await service.post(TOKEN, `${empty}`, headers), 'assertion: required');
    const cookie = new URLSearchParams({ grant_type: 'cookie', client_id: SIGN_IN });
    const refused = { status: 400, error: 'invalid_request', description: INVALID_MESSAGE, hint: 'body: not JSON' };
    expectError(await service.post(TOKEN, `${cookie}`, headers), refused);
  });
});

describe('the claims of an assertion', () => {
  it.each<[string, () => object]>([
    ['wrong issuer', () => ({ iss: 'https://evil.example' })],
    ['the issuer with a slash', () => ({ iss: 'https://idp.example/' })],
    ['a list of issuers', () => ({ iss: ['https://idp.example'] })],
    ['no iss', () => ({ iss: undefined })],
    ['another audience', () => ({ aud: 'https://other.example' })],
    ['other audiences', () => ({ aud: ['https://other.example', `${AUTH_URL}/`] })],
    ['an empty audience', () => ({ aud: [] })],
    ['no aud', () => ({ aud: undefined })],
    ['no exp', () => ({ exp: undefined })],
    ['exp as text', () => ({ exp: String(seconds() + 60) })],
    ['an exp of now', () => ({ exp: seconds() })],
    ['an exp more than 10 minutes and 30 seconds ahead', () => ({ exp: seconds() + 635 })],
    ['an exp beyond every date', () => ({ exp: 1e300 })],
    ['an exp in milliseconds', () => ({ exp: (seconds() + 60) * 1000 })],
    ['a negative exp', () => ({ exp: -1 })],
    ['a negative iat', () => ({ iat: -1 })],
    ['a negative nbf', () => ({ nbf: -1e308 })],
    ['iat as text', () => ({ iat: String(seconds()) })],
    ['auth_time in milliseconds', () => ({ auth_time: seconds() * 1000 })],
    ['a negative auth_time', () => ({ auth_time: -1 })],
    ['auth_time as text', () => ({ auth_time: 'NaN' })],
    ['nbf beyond the skew', () => ({ nbf: seconds() + 35 })],
    ['iat beyond the skew', () => ({ iat: seconds() + 35 })],
    ['no sub', () => ({ sub: undefined })],
    ['a sub of 256 characters', () => ({ sub: 'x'.repeat(256) })],
    ['a sub with a control character', () => ({ sub: 'a\u0000b' })],
    ['a lone surrogate in sub', () => ({ sub: 'a\ud800' })],
    ['no jti', () => ({ jti: undefined })],
    ['an empty jti', () => ({ jti: '' })],
    ['a jti of 256 characters', () => ({ jti: 'x'.repeat(256) })],
    ['another client', () => ({ client_id: ACME_SITE })],
    ['another organization', () => ({ organization_id: RIVAL })],
  ])('are rejected with %s', (_, claims) =>
    expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert(claims()))),
  );

  it.each<[string, () => object]>([
    ['the URL of the service as aud', () => ({ aud: AUTH_URL })],
    ['the token endpoint as aud', () => ({ aud: `${AUTH_URL}/v2/customer/token` })],
    ['one of several audiences', () => ({ aud: ['https://other.example', AUTH_URL] })],
    ['an exp 10 minutes ahead of a clock that is 25 s ahead', () => ({ exp: seconds() + 625, iat: seconds() + 25 })],
    ['nbf and iat within the skew', () => ({ nbf: seconds() + 25, iat: seconds() + 25 })],
    ['no iat', () => ({ iat: undefined })],
    ['times with fractions', () => ({ exp: seconds() + 60.5, iat: seconds() - 0.5, auth_time: 1.5 })],
    ['a sub of 255 characters', () => ({ sub: randomUUID().padEnd(255, 'x') })],
    ['this client and this organization', () => ({ client_id: SIGN_IN, organization_id: ACME })],
  ])('are accepted with %s', async (_, claims) => {
    expect((await signIn(service, await assert({ sub: newUser(), ...claims() }))).status).toBe(200);
  });
});

describe('the header of an assertion', () => {
  const firstKey = () => acme.issuer.keys[0] as TestIssuer['keys'][number];
  const segment = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const payload = () =>
    segment({
      ...{ iss: acme.issuer.issuer, sub: newUser(), aud: AUTH_URL, jti: randomUUID(), exp: seconds() + 60 },
    });

  it('cannot declare that the assertion is unsigned', async () => {
    for (const alg of ['none', 'None', 'NONE', '']) {
      const unsigned = `${segment({ alg, typ: 'JWT', kid: firstKey().kid })}.${payload()}.`;
      await expectInvalidGrantWithoutCustomer(() => signIn(service, unsigned));
      await expectInvalidGrantWithoutCustomer(() => signIn(service, `${unsigned}AAAA`));
    }
  });

  it('cannot turn the public key into an HMAC secret', async () => {
    for (const secret of [
      JSON.stringify(firstKey().jwk),
      acme.jwks.keys[0] && Buffer.from(JSON.stringify(acme.jwks)),
    ]) {
      const signed = `${segment({ alg: 'HS256', typ: 'JWT', kid: firstKey().kid })}.${payload()}`;
      const mac = createHmac('sha256', secret as string)
        .update(signed)
        .digest('base64url');
      await expectInvalidGrantWithoutCustomer(() => signIn(service, `${signed}.${mac}`));
    }
  });

  it('cannot supply a key, or the URL of a key', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'mine', alg: 'ES256', use: 'sig' };
    const attacker = await SignInSystem.start();
    const jku = attacker.settings().jwks_uri;
    for (const keyParameters of [{ jwk }, { jku }, { x5u: jku }, { x5c: ['AAAA'] }]) {
      for (const kid of ['mine', firstKey().kid, undefined]) {
        const signed = `${segment({ alg: 'ES256', typ: 'JWT', kid, ...keyParameters })}.${payload()}`;
        const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
        await expectInvalidGrantWithoutCustomer(() => signIn(service, `${signed}.${signature.toString('base64url')}`));
      }
      await expectInvalidGrantWithoutCustomer(async () =>
        signIn(service, await assert({ sub: newUser() }, keyParameters)),
      );
    }
    expect(attacker.issuer.requests).toBe(0);
    await attacker.issuer.stop();
  });

  it('cannot name an unknown critical extension, or b64', async () => {
    await expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert({}, { crit: ['x'], x: 1 })));
    await expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert({}, { b64: true })));
  });

  it.each(['at+jwt', 'dpop+jwt', 'logout+jwt', 'application/at+jwt', 7])(
    'cannot have the type of another kind of JWT: %s',
    (typ) => expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert({ sub: newUser() }, { typ }))),
  );

  it.each(['JWT', 'jwt', 'application/jwt', 'authorization-grant+jwt', undefined])(
    'may have the type %s',
    async (typ) => {
      expect((await signIn(service, await assert({ sub: newUser() }, { typ }))).status).toBe(200);
    },
  );

  it('names no other key than the signing key', async () => {
    const second = acme.issuer.keys[1] as TestIssuer['keys'][number];
    expect((await signIn(service, await assert({ sub: newUser() }, {}, second))).status).toBe(200);
    await expectInvalidGrantWithoutCustomer(async () =>
      signIn(service, await assert({}, { kid: second.kid }, firstKey())),
    );
    await expectInvalidGrantWithoutCustomer(async () =>
      signIn(service, await assert({}, { kid: firstKey().kid }, second)),
    );
    for (const key of [firstKey(), second])
      expect((await signIn(service, await assert({ sub: newUser() }, { kid: undefined }, key))).status).toBe(200);
    for (const kid of [7, '', '../keys', 'unknown'])
      await expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert({}, { kid }, firstKey())));
  });
});

describe('the single use of an assertion', () => {
  it('depends on the exact bytes of the jti, not on other claims', async () => {
    const jti = randomUUID();
    expect((await signIn(service, await assert({ sub: newUser(), jti }))).status).toBe(200);
    await expectInvalidGrantWithoutCustomer(async () => signIn(service, await assert({ sub: newUser(), jti })));
    for (const otherJti of [jti.toUpperCase(), `${jti} `])
      expect((await signIn(service, await assert({ sub: newUser(), jti: otherJti }))).status).toBe(200);
  });

  it('depends on the organization, too: another organization whose sign-in system has the same issuer text uses up nothing', async () => {
    const issuer = 'https://idp.example';
    const settings = {
      [ACME]: { issuer, jwks: KIT.jwks, audience: ['acme'] },
      [RIVAL]: { issuer, jwks: rival.jwks, audience: ['rival'] },
    };
    const alike = await serviceOfTest({ registry: registryWithSignIn(settings) });
    const claims = { iss: issuer, sub: newUser(), jti: randomUUID() };
    const ofRival = { client_id: RIVAL_SIGN_IN, organization_id: RIVAL };
    expect(
      (await signIn(alike, await rival.assert(alike.clock.now(), { ...claims, aud: 'rival' }), ofRival)).status,
    ).toBe(200);
    const assertion = await KIT.assert(alike.clock.now(), { ...claims, aud: 'acme' });
    expect((await signIn(alike, assertion)).status).toBe(200);
    expectInvalidGrant(await signIn(alike, assertion));
  });

  it('depends on the issuer, too: if the organization changes its sign-in system, the new one may use the same jti', async () => {
    const [id, jti] = [randomUUID(), randomUUID()];
    await service.admin('POST', '/admin/organizations', { id, name: 'New', public_clients: [PUBLIC_SIGN_IN] });
    for (const iss of ['https://one.example', 'https://two.example']) {
      const grants = { [JWT_BEARER]: { issuer: iss, jwks: KIT.jwks } };
      await service.admin('PATCH', `/admin/organizations/${id}`, { grants });
      const assertion = await KIT.assert(service.clock.now(), { iss, sub: newUser(), jti });
      const response = await signIn(service, assertion, { client_id: PUBLIC_SIGN_IN, organization_id: id });
      expect(response.status).toBe(200);
    }
  });

  it('is remembered until 30 s after the end of the assertion, because the clock of another process may be behind', async () => {
    await service.rowsOf(ProofUse).clear();
    expect((await signIn(service, await assert({ sub: newUser(), exp: seconds() + 60 }))).status).toBe(200);
    service.clock.advance({ seconds: 85 });
    await purge(service);
    expect(await service.rowsOf(ProofUse).count()).toBe(1);
  });

  it('is recorded without the text of the user id or the jti', async () => {
    const user = newUser();
    const assertion = await assert({ sub: user, jti: `jti-of-${user}` });
    await signIn(service, assertion);
    const rows = JSON.stringify([await service.rowsOf(ProofUse).find(), await service.rowsOf(CustomerKey).find()]);
    expect(rows).not.toContain(user);
  });
});

describe('the JWT bearer grant', () => {
  it('is only for clients whose grant_types list it', async () => {
    const response = await signInAs(newUser(), { client_id: ACME_SITE });
    expectError(response, { status: 400, error: 'unauthorized_client', hint: 'grant_type: not for this client' });
  });

  it('is only for organizations that have a sign-in system', async () => {
    const organization_id = 'b0f8b6b0-5b0a-4a7e-8a43-3c6a4a1c0d22';
    const response = await signInAs(newUser(), { client_id: PUBLIC_SIGN_IN, organization_id });
    expectError(response, { status: 400, error: 'unauthorized_client', hint: 'grant_type: not for this organization' });
    const unknown = await signInAs(newUser(), { client_id: PUBLIC_SIGN_IN, organization_id: randomUUID() });
    expectInvalidRequest(unknown, 'organization_id: unknown');
  });

  it('accepts from a sign-in system only users of its own organization', async () => {
    const ofRival = { client_id: PUBLIC_SIGN_IN, organization_id: RIVAL };
    await expectInvalidGrantWithoutCustomer(() => signInAs(newUser(), ofRival));
    await expectInvalidGrantWithoutCustomer(async () => signIn(service, await assertRival({})));
    await expectInvalidGrantWithoutCustomer(async () =>
      signIn(service, await assertRival({ iss: acme.issuer.issuer })),
    );
    await expectInvalidGrantWithoutCustomer(async () =>
      signIn(service, await assert({ iss: 'https://rival.example' }), ofRival),
    );
  });
});
