import { TOKEN } from './cookie-grant.js';
import { WITH_REFRESH } from './customer-refresh.js';
import { TestIssuer } from './test-issuer.js';
import { ACME, ACME_ORIGIN, RIVAL, RIVAL_ORIGIN, testRegistry } from './test-registry.js';
import type { HttpClient, TestResponse } from './test-service.js';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Clients that may use the grant: one of Acme, one of Rival, and one public client of all organizations. */
export const SIGN_IN = 'acme-sign-in';
export const RIVAL_SIGN_IN = 'rival-sign-in';
export const PUBLIC_SIGN_IN = 'public-sign-in';
/** The `AUTH_URL` of the service in the tests. */
export const AUTH_URL = 'https://auth.example';

/** The settings of a client whose page may sign browsers in. */
const REMEMBER_SETTINGS = {
  [JWT_BEARER]: { remember: ['browser'] },
  identity_token: { remember: ['browser', 'refresh_token'] },
};

/** The sign-in system of an organization, which issues assertions about its users. */
export class SignInSystem {
  private constructor(readonly issuer: TestIssuer) {}

  static async start(algorithm?: string): Promise<SignInSystem> {
    return new SignInSystem(await TestIssuer.start(algorithm));
  }

  /** The settings of the grant for this system in the registry. */
  settings(more: object = {}): Record<string, unknown> {
    const { issuer, jwks_uri } = this.issuer.trust();
    return { issuer, jwks_uri, link_browsers: true, ...more };
  }

  /** The public keys of the system, for a registry that contains them. */
  get jwks(): { keys: object[] } {
    return { keys: this.issuer.keys.map(({ jwk }) => jwk) };
  }

  /** Signs an assertion about a user. A claim that is `undefined` is omitted. */
  assert(now: number, claims: object = {}, header: object = {}, key = this.issuer.keys[0]): Promise<string> {
    const omitted = { client_id: undefined, organization_id: undefined, scope: undefined };
    const usual = { ...omitted, sub: 'user-1', aud: AUTH_URL, exp: Math.floor(now / 1000) + 300 };
    return this.issuer.sign(now, { ...usual, ...claims }, { typ: 'JWT', ...header }, key);
  }
}

/** The test registry with sign-in systems of organizations and with clients that may use them. */
export function registryWithSignIn(settings: Record<string, object>, registry = testRegistry()) {
  registry.organizations = registry.organizations.map((organization) => {
    const grantSettings = settings[(organization as { id: string }).id];
    return grantSettings ? { ...organization, grants: { [JWT_BEARER]: grantSettings } } : organization;
  });
  const grant_types = [...WITH_REFRESH, JWT_BEARER];
  const client = { name: 'Sign-in', client_type: 'web', grant_types, grants: REMEMBER_SETTINGS };
  registry.clients.push(
    { ...client, client_id: SIGN_IN, organization_id: ACME, redirect_uris: [`${ACME_ORIGIN}/`] },
    { ...client, client_id: RIVAL_SIGN_IN, organization_id: RIVAL, origins: [RIVAL_ORIGIN] },
    { ...client, client_id: PUBLIC_SIGN_IN },
  );
  return registry;
}

export function bearerBody(assertion: unknown, more: object = {}): object {
  return { grant_type: JWT_BEARER, client_id: SIGN_IN, organization_id: ACME, assertion, ...more };
}

export function signIn(
  service: HttpClient,
  assertion: unknown,
  more: object = {},
  headers = {},
): Promise<TestResponse> {
  return service.post(TOKEN, bearerBody(assertion, more), headers);
}
