import { TOKEN } from './cookie-grant.js';
import { TestIssuer } from './test-issuer.js';
import { ACME, ACME_ORIGIN, RIVAL, testRegistry } from './test-registry.js';
import type { HttpClient, TestResponse } from './test-service.js';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Clients that may use the grant: of Acme, of Rival, of every organization. */
export const SIGN_IN = 'acme-sign-in';
export const RIVAL_SIGN_IN = 'rival-sign-in';
export const PUBLIC_SIGN_IN = 'public-sign-in';
/** Where the tests' service is. */
export const AUTH_URL = 'https://auth.example';

/** An organization's own sign-in system. */
export class SignInSystem {
  private constructor(readonly issuer: TestIssuer) {}

  static async start(algorithm?: string): Promise<SignInSystem> {
    return new SignInSystem(await TestIssuer.start(algorithm));
  }

  /** What the registry says of it. */
  settings(more: object = {}): Record<string, unknown> {
    const { issuer, jwks_uri } = this.issuer.trust();
    return { issuer, jwks_uri, link_browsers: true, ...more };
  }

  /** Its keys, for a registry that lists them. */
  get jwks(): { keys: object[] } {
    return { keys: this.issuer.keys.map(({ jwk }) => jwk) };
  }

  /** An assertion about a user; what is `undefined` is left out. */
  assert(now: number, claims: object = {}, header: object = {}, key = this.issuer.keys[0]): Promise<string> {
    const left = { client_id: undefined, organization_id: undefined, scope: undefined };
    const usual = { ...left, sub: 'user-1', aud: AUTH_URL, exp: Math.floor(now / 1000) + 300 };
    return this.issuer.sign(now, { ...usual, ...claims }, { typ: 'JWT', ...header }, key);
  }
}

/** The registry of all tests, with sign-in systems of organizations, and clients that may use them. */
export function registryWithSignIn(settings: Record<string, object>) {
  const registry = testRegistry();
  registry.organizations = registry.organizations.map((organization) => {
    const own = settings[(organization as { id: string }).id];
    return own ? { ...organization, grants: { [JWT_BEARER]: own } } : organization;
  });
  const client = { name: 'Sign-in', client_type: 'web', grant_types: [JWT_BEARER, 'cookie'] };
  registry.clients.push(
    { ...client, client_id: SIGN_IN, organization_id: ACME, redirect_uris: [`${ACME_ORIGIN}/`] },
    { ...client, client_id: RIVAL_SIGN_IN, organization_id: RIVAL },
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
