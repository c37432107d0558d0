import { randomUUID } from 'node:crypto';
import { describeGrant, type TestEnvironment } from '@customer-authorization/conformance-kit';
import { decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose';
import extension, { BoardingPassGrant } from '../src/index.js';

const { privateKey, publicKey } = await generateKeyPair('ES256');
const JWKS = { keys: [{ ...(await exportJWK(publicKey)), kid: 'a' }] };

/** Each organization has an issuer of its own. */
const issuerOf = (isOther: boolean) => `https://${isOther ? 'other-' : ''}airline.example`;
const settingsOf = (isOther: boolean) => ({ organization: { issuer: issuerOf(isOther), jwks: JWKS } });

async function passOf(sub: string, { service, isOther }: TestEnvironment): Promise<object> {
  const now = service.clock.seconds();
  const claims = { iss: issuerOf(isOther), aud: 'https://auth.example', sub, jti: randomUUID() };
  const pass = new SignJWT({ ...claims, iat: now, exp: now + 86_400 });
  return { boarding_pass: await pass.setProtectedHeader({ alg: 'ES256', kid: 'a' }).sign(privateKey) };
}

// the rules for all grants
describeGrant(BoardingPassGrant, {
  ...extension,
  settings: { ...settingsOf(false), other: settingsOf(true) },
  valid: (environment) => passOf(randomUUID(), environment),
  again: ({ boarding_pass }, environment) => passOf(decodeJwt(`${boarding_pass}`).sub as string, environment),
});
