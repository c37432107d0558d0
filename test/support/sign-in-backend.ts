import { generateKeyPairSync } from 'node:crypto';
import type { Page } from 'playwright-core';
import { JWT_BEARER } from './assertion-issuer.js';
import { loadExample } from './load-example.js';
import { ACME, ACME_ORIGIN, ACME_SITE, changed, type testRegistry } from './test-registry.js';

const ISSUER = 'https://login.acme.example';
const AUTH_URL = 'https://auth.example';
const KEY_ID = 'key-1';
export const ASSERTION = `${ACME_ORIGIN}/assertion`;

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const settings = { issuer: ISSUER, jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID }] } };

/** Lets the users of ACME sign in, in browsers of its page. */
export function signInRegistry(
  registry: ReturnType<typeof testRegistry>,
  ofSite: object,
): ReturnType<typeof testRegistry> {
  const ofAcme = { grants: { [JWT_BEARER]: { ...settings, link_browsers: true } } };
  registry.organizations = changed(registry.organizations, [ACME], ofAcme);
  registry.clients = changed(registry.clients, [ACME_SITE], ofSite);
  return registry;
}

/**
 * Gives a page the backend of the guide at its origin. `session` is the user's session at this backend. Assertions
 * reach the page after `isReleased`.
 */
export async function routeBackend(tab: Page, session: { userId?: string }, isReleased?: Promise<void>): Promise<void> {
  const { assertion } = await loadExample('backend/assertion.js');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const ids = { clientId: ACME_SITE, organizationId: ACME };
  const handle = assertion({ issuer: ISSUER, audience: AUTH_URL, ...ids, keyId: KEY_ID, privateKey: pem });
  await tab.route(`${ACME_ORIGIN}/sign-out`, (route) => {
    delete session.userId;
    return route.fulfill({ json: {} });
  });
  await tab.route(ASSERTION, (route) => {
    const response = {
      statusCode: 200,
      set: () => undefined,
      status(code: number) {
        this.statusCode = code;
        return this;
      },
      async json(body: object) {
        await isReleased;
        return route.fulfill({ status: this.statusCode, json: body });
      },
    };
    return handle({ session }, response);
  });
}
