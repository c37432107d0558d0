import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { JWT_BEARER, registryWithSignIn, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { expectInvalidGrant, expectInvalidRequest, expectUnavailable } from '../support/expect-error.js';
import { privateKey, type TestIssuer } from '../support/test-issuer.js';
import { ACME } from '../support/test-registry.js';
import type { TestService } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const realNow = Date.now.bind(Date);

const realTimeout = AbortSignal.timeout.bind(AbortSignal);

let acme: SignInSystem;
let service: TestService;
const start = async (settings: Record<string, object>) => {
  service = await serviceOfTest({ registry: registryWithSignIn(settings) });
};
beforeEach(async () => {
  acme = await SignInSystem.start();
  // An issuer has one second to respond, which a busy machine can exceed. An issuer that should respond gets a minute.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => realTimeout(acme.issuer.broken ? ms : 60 * ms));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await acme.issuer.stop();
});

const keyAt = (index: number) => acme.issuer.keys.at(index) as TestIssuer['keys'][number];
const send = async (header: object = {}, key = keyAt(-1)) =>
  signIn(service, await acme.assert(service.clock.now(), {}, header, key));

/** Moves `Date.now`, which both the clock of the service and the key cache read. */
function moveTime(seconds: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + seconds * 1000);
}

describe('keys at a jwks_uri', () => {
  beforeEach(() => start({ [ACME]: acme.settings() }));

  it('are not fetched for a value that cannot be an assertion', async () => {
    for (const assertion of ['x', 'e30.e30.AAAA', await acme.assert(Date.now(), {}, { typ: 'at+jwt' })])
      expectInvalidGrant(await signIn(service, assertion));
    expect(acme.issuer.requests).toBe(0);
  });

  it('cause 503 for an assertion while the issuer fails', async () => {
    acme.issuer.broken = (_, response) => void response.writeHead(500).end();
    expectUnavailable(await send());
    acme.issuer.broken = undefined;
    moveTime(2);
    expect((await send()).status).toBe(200);
    expect(acme.issuer.requests).toBe(2);
  });
});

it('keys in the registry are the only keys that verify assertions, and cause no request to the issuer', async () => {
  const { issuer } = acme.settings();
  await start({ [ACME]: { issuer, jwks: acme.jwks } });
  expect((await send()).status).toBe(200);
  const unlistedKey = await acme.issuer.addKey();
  expectInvalidGrant(await send({}, unlistedKey));
  expectInvalidGrant(await send({ kid: keyAt(0).kid }, unlistedKey));
  expect(acme.issuer.requests).toBe(0);
});

it('the audience of an assertion must be one of those in the registry if the registry has any', async () => {
  await start({ [ACME]: acme.settings({ audience: ['urn:acme:chat'] }) });
  const sendTo = async (aud: unknown) => signIn(service, await acme.assert(service.clock.now(), { aud }));
  expect((await sendTo('urn:acme:chat')).status).toBe(200);
  expect((await sendTo(['x', 'urn:acme:chat'])).status).toBe(200);
  for (const aud of ['https://auth.example', 'urn:acme:chat ', ['x']]) expectInvalidGrant(await sendTo(aud));
});

describe('the sign-in settings in the registry', () => {
  const issuer = 'https://idp.example';
  const jwks_uri = 'https://idp.example/keys';
  const rsa = (modulusLength: number) => ({
    ...generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' }),
    kid: 'rsa',
  });

  const admin = useService();
  const create = (settings: object) =>
    admin.admin('POST', '/admin/organizations', { id: randomUUID(), name: 'New', grants: { [JWT_BEARER]: settings } });

  const keySet = (...keys: object[]) => ({ issuer, jwks: { keys } });
  const own = () => acme.jwks.keys[0] as object;

  it.each<[string, () => object, RegExp]>([
    ['without an issuer', () => ({ jwks_uri }), /\.issuer: /],
    ['without keys', () => ({ issuer }), /\.jwks: must be a JWK Set/],
    [
      'with keys and their URL',
      () => ({ ...keySet(own()), jwks_uri }),
      /\.jwks: must not be set together with jwks_uri/,
    ],
    ['with keys over http', () => ({ issuer, jwks_uri: 'http://idp.example/' }), /\.jwks_uri: must be an https URL/],
    ['with a text that is no URL', () => ({ issuer, jwks_uri: 'https://' }), /must be an https URL/],
    ['with a user in the URL', () => ({ issuer, jwks_uri: 'https://a@idp.example/' }), /must be an https URL/],
    ['with a password in the URL', () => ({ issuer, jwks_uri: 'https://:b@idp.example/' }), /must be an https URL/],
    ['with a fragment in the URL', () => ({ issuer, jwks_uri: 'https://idp.example/#a' }), /must be an https URL/],
    ['with no keys in the set', () => keySet(), /\.jwks: must be a JWK Set/],
    ['with a private key', () => keySet(privateKey('x')), /\.jwks: keys\[0\] must be a public key/],
    ['with a secret', () => keySet({ kty: 'oct', k: 'c2VjcmV0', kid: 'x' }), /\.jwks: keys\[0\] must be a public/],
    ['with a key without kid', () => keySet({ ...own(), kid: undefined }), /keys\[0\] must have a kid/],
    ['with two keys of one kid', () => keySet(own(), own()), /different kid/],
    ['with a key for encryption', () => keySet({ ...own(), use: 'enc' }), /must be for signatures/],
    ['with a small RSA key', () => keySet(rsa(1024)), /must be EC P-256/],
    [
      'with a key that is no point of the curve',
      () => keySet({ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'x' }),
      /must be EC P-256/,
    ],
    ['with an empty audience', () => ({ issuer, jwks_uri, audience: [] }), /\.audience: /],
    ['with an unknown field', () => ({ issuer, jwks_uri, algorithms: ['none'] }), /\.algorithms: unknown field/],
  ])('are rejected %s', async (_, settings, message) => {
    expectInvalidRequest(await create(settings()), message);
  });

  it('may have an https jwks_uri, and an RSA key of 2048 bits', async () => {
    const ofOther = { ...keySet(rsa(2048)), issuer: 'https://other.example' };
    for (const settings of [{ issuer, jwks_uri }, ofOther]) expect((await create(settings)).status).toBe(201);
  });
});
