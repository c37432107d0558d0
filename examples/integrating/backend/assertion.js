import { createPrivateKey, randomUUID, sign } from 'node:crypto';
import { externalId } from './customer-token.js';

const LIFETIME_SECONDS = 60;

/** Express handler that gives the page of a signed-in user an assertion. `privateKey` is an EC key (P-256) as PEM. */
export function assertion({ issuer, audience, clientId, organizationId, keyId, privateKey }) {
  const key = createPrivateKey(privateKey);
  return ({ session }, response) => {
    response.set('Cache-Control', 'no-store');
    // `session` is of your own sign-in, for example of express-session
    if (session?.userId == null) return response.status(401).json({ error: 'signed_out' });
    const now = Math.floor(Date.now() / 1000);
    const ids = { client_id: clientId, organization_id: organizationId, jti: randomUUID() };
    const times = { iat: now, exp: now + LIFETIME_SECONDS };
    const claims = { iss: issuer, aud: audience, sub: externalId(session.userId), ...ids, ...times };
    const content = `${encode({ alg: 'ES256', typ: 'JWT', kid: keyId })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' });
    response.json({ assertion: `${content}.${signature.toString('base64url')}` });
  };
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
