import { generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();

/** A token that differs from a valid one in its claims. */
async function changed(claims: object): Promise<string> {
  return test.issuer.sign(test.issuer.claims(test.clock.now(), claims));
}

describe('verify', () => {
  it('accepts REGION:JWS and the bare JWS, and resolves to the claims', async () => {
    const verifier = await test.start();
    const token = await test.token({ gty: 'cookie', group_id: 'vip', prize: { name: 'a bicycle' } });
    const expected = {
      sub: 'customer-1',
      jti: 'token-1',
      gty: 'cookie',
      group_id: 'vip',
      prize: { name: 'a bicycle' },
    };
    expect(await verifier.verify(token)).toMatchObject(expected);
    expect(await verifier.verify(token.replace('eu:', ''))).toMatchObject(expected);
  });

  it('resolves to frozen claims, because later calls with the same token share them', async () => {
    const verifier = await test.start();
    const token = await test.token({ act: { sub: 'agent-1', sid: 'session-0', ep: 0, client_id: 'crm' } });
    const claims = await verifier.verify(token);
    expect(() => Object.assign(claims, { sub: 'another' })).toThrow(TypeError);
    expect(() => Object.assign(claims.act as object, { sub: 'another' })).toThrow(TypeError);
  });

  it('adds userVerified, which only the claim user_verified makes true', async () => {
    const verifier = await test.start({ audience: ['customer-api', 'agent-api'] });
    const act = { sub: 'agent-1', sid: 'session-0', client_id: 'crm' };
    const valueFor = async (claims: object) => (await verifier.verify(await changed(claims))).userVerified;
    for (const claims of [
      { user_verified: true },
      { user_verified: true, act },
      { user_verified: true, userVerified: false },
    ])
      expect(await valueFor(claims)).toBe(true);
    for (const value of [undefined, false, 'true', 1, null, {}])
      expect(await valueFor({ user_verified: value })).toBe(false);
    for (const claims of [{}, { act }, { userVerified: true }, { aud: 'agent-api', scope: 'customers:own' }])
      expect(await valueFor(claims)).toBe(false);
  });

  it('accepts each of several audiences, and no other', async () => {
    const verifier = await test.start({ audience: ['customer-api', 'agent-api'] });
    for (const aud of ['customer-api', 'agent-api'])
      expect(await verifier.verify(await test.token({ aud }))).toMatchObject({ aud });
    for (const aud of ['another-api', ['customer-api'], undefined])
      await expect(verifier.verify(await test.token({ aud }))).rejects.toThrow();
  });

  it.each<[string, object, string]>([
    ['another issuer', { iss: 'https://other.example' }, 'other_issuer'],
    ['another audience', { aud: 'agent-api' }, 'other_audience'],
    ['several audiences', { aud: ['customer-api'] }, 'rejected_claim'],
    ['no jti', { jti: undefined }, 'rejected_claim'],
    ['no client', { client_id: undefined }, 'rejected_claim'],
    ['no subject', { sub: undefined }, 'rejected_claim'],
    ['no exp', { exp: undefined }, 'rejected_claim'],
    ['no iat', { iat: undefined }, 'rejected_claim'],
    ['a generation as text', { gen: '1' }, 'rejected_claim'],
    ['a session that is no text', { sid: 1, ep: 1 }, 'rejected_claim'],
    ['an epoch as text', { sid: 'session-1', ep: '1' }, 'rejected_claim'],
    ['a negative epoch', { sid: 'session-1', ep: -1 }, 'rejected_claim'],
    ['an actor that is null', { act: null }, 'rejected_claim'],
    ['an actor without a subject', { act: { sid: 'session-0', client_id: 'crm' } }, 'rejected_claim'],
    ['an actor without a session', { act: { sub: 'agent-1', client_id: 'crm' } }, 'rejected_claim'],
    ['an actor with an epoch as text', { act: { sub: 'agent-1', sid: 'session-0', ep: '1' } }, 'rejected_claim'],
  ])('rejects a token with %s', async (_, claims, code) => {
    const verifier = await test.start();
    await expect(verifier.verify(await changed(claims))).rejects.toMatchObject({ code, statusCode: 401 });
  });

  it.each<[string, object, string]>([
    ['another type', { typ: 'JWT' }, 'not_an_access_token'],
    ['no type', { typ: undefined }, 'not_an_access_token'],
    ['a critical header', { crit: ['exp'], exp: 1 }, 'malformed'],
    ['no kid', { kid: undefined }, 'unknown_key'],
  ])('rejects a token with %s', async (_, header, code) => {
    const verifier = await test.start();
    const { privateKey } = test.issuer.keys[0] as (typeof test.issuer.keys)[0];
    const claims = test.issuer.claims(test.clock.now());
    const full = { typ: 'at+jwt', alg: 'ES256', kid: 'key-1', ...header };
    const token = await new SignJWT(claims).setProtectedHeader(full).sign(privateKey, { crit: { exp: true } });
    await expect(verifier.verify(token)).rejects.toMatchObject({ code });
  });

  it('rejects a token of another algorithm, and an unsigned token', async () => {
    const verifier = await test.start();
    const claims = test.issuer.claims(test.clock.now());
    const { privateKey } = await generateKeyPair('RS256');
    const header = { typ: 'at+jwt', kid: 'key-1' };
    const rs256 = await new SignJWT(claims).setProtectedHeader({ ...header, alg: 'RS256' }).sign(privateKey);
    const hs256 = await new SignJWT(claims).setProtectedHeader({ ...header, alg: 'HS256' }).sign(new Uint8Array(32));
    for (const token of [rs256, hs256])
      await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'not_an_access_token' });
    await expect(verifier.verify(new UnsecuredJWT(claims).encode())).rejects.toMatchObject({ code: 'malformed' });
  });

  it('rejects a token with the signature or the claims of another one, or with another key under its kid', async () => {
    const verifier = await test.start();
    const [first = '', second = ''] = [await changed({}), await changed({ sub: 'customer-2' })];
    const [header, claims, signature] = first.split('.') as [string, string, string];
    const [, otherClaims, otherSignature] = second.split('.') as [string, string, string];
    const { privateKey } = await generateKeyPair('ES256');
    const ofOtherKey = await new SignJWT(test.issuer.claims(test.clock.now()))
      .setProtectedHeader({ typ: 'at+jwt', alg: 'ES256', kid: 'key-1' })
      .sign(privateKey);
    const mixed = [`${header}.${otherClaims}.${signature}`, `${header}.${claims}.${otherSignature}`, ofOtherKey];
    for (const token of [
      ...mixed,
      `${first.slice(0, -1)}${String.fromCharCode(first.charCodeAt(first.length - 1) + 1)}`,
    ])
      await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'invalid_signature' });
  });

  it('rejects a token from the second of its expiry, also if it was verified before', async () => {
    const verifier = await test.start();
    const token = await test.token({ exp: test.clock.seconds() + 10 });
    test.clock.advance(9.999);
    expect(await verifier.verify(token)).toBeDefined();
    test.clock.advance(0.001);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: 'expired', statusCode: 401 });
  });

  it.each(['iat', 'nbf'])('accepts a token whose %s is at most 30 s ahead', async (claim) => {
    const verifier = await test.start();
    const at = (seconds: number) => test.token({ [claim]: test.clock.seconds() + seconds });
    expect(await verifier.verify(await at(30))).toBeDefined();
    await expect(verifier.verify(await at(31))).rejects.toMatchObject({ code: 'not_yet_valid' });
  });
});
