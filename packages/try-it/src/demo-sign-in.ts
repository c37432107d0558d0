import { createECDH, createHash, createPrivateKey, type JsonWebKey, randomUUID, sign } from 'node:crypto';

const CURVE = 'prime256v1';
const COORDINATE_BYTES = 32;
const ISSUER = 'https://sign-in.acme.example';
const KEY_ID = 'demo';
const LIFETIME_SECONDS = 60;

/** Who signs in where. */
interface SignIn {
  userId: string;
  audience: string;
  clientId: string;
  organizationId: string;
}

/** The settings of the JWT bearer grant for the sign-in system of the demo organization. */
export function demoSignInSettings(clientSecret: string) {
  const { d: _private, ...publicKey } = keyOf(clientSecret);
  return { issuer: ISSUER, jwks: { keys: [{ ...publicKey, kid: KEY_ID }] }, link_browsers: true };
}

/** What the backend of docs/integrating/browser.md gives the page of a signed-in user. */
export function demoAssertion({ userId, audience, clientId, organizationId }: SignIn, clientSecret: string): string {
  const now = Math.floor(Date.now() / 1_000);
  const ids = { client_id: clientId, organization_id: organizationId, jti: randomUUID() };
  const claims = { iss: ISSUER, aud: audience, sub: userId, ...ids, iat: now, exp: now + LIFETIME_SECONDS };
  const content = `${encode({ alg: 'ES256', typ: 'JWT', kid: KEY_ID })}.${encode(claims)}`;
  const key = createPrivateKey({ key: keyOf(clientSecret), format: 'jwk' });
  const signature = sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' });
  return `${content}.${signature.toString('base64url')}`;
}

/** The key follows from the secret of the backend's client, so that the demo needs no file for it. */
function keyOf(clientSecret: string): JsonWebKey {
  const pair = createECDH(CURVE);
  pair.setPrivateKey(createHash('sha256').update(`sign-in ${clientSecret}`).digest());
  const coordinates = pair.getPublicKey().subarray(1); // the first byte says that both follow
  return {
    ...{ kty: 'EC', crv: 'P-256' },
    x: coordinates.subarray(0, COORDINATE_BYTES).toString('base64url'),
    y: coordinates.subarray(COORDINATE_BYTES).toString('base64url'),
    d: pair.getPrivateKey('base64url'),
  };
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
