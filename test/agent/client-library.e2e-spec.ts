import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/free-port.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { AgentBrowser, BACKEND_CALLBACK, isForm, NATIVE_CALLBACK, targetOf } from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME, ACME_AGENT, ACME_BACKEND, ACME_NATIVE, BACKEND_SECRET, testRegistry } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

/** The service under test has no TLS. All other checks of the library stay enabled. */
const insecure = { [oauth.allowInsecureRequests]: true };
const backend: oauth.Client = { client_id: ACME_BACKEND };
const signing: oauth.Client = { client_id: 'acme-signing-backend' };
const signingServer: oauth.Client = { client_id: 'signing-api' };
const native: oauth.Client = { client_id: ACME_NATIVE };
const byBasic = oauth.ClientSecretBasic(BACKEND_SECRET);
/** Signs with the key of the client. The library calls it with each request. */
const byKey: oauth.ClientAuth = (...parameters) => {
  const [{ privateKey, kid }] = keys.keys as [TestIssuer['keys'][number]];
  return oauth.PrivateKeyJwt({ key: privateKey, kid })(...parameters);
};

let keys: TestIssuer;
let service: TestService;
let server: oauth.AuthorizationServer;
beforeAll(async () => {
  const port = await freePort();
  const environment = { PORT: String(port), AUTH_URL: `http://127.0.0.1:${port}` };
  keys = await TestIssuer.start();
  const registry = testRegistry();
  const jwks = { keys: keys.keys.map(({ jwk }) => jwk) };
  const client = { name: 'Backend', client_type: 'server', organization_id: ACME, scopes: ['customers:own'] };
  const byItself = { agent: ACME_AGENT.email, grant_types: ['agent_token', 'client_credentials'] };
  registry.clients.push({ ...client, ...signing, ...byItself, redirect_uris: [BACKEND_CALLBACK], jwks });
  registry.resource_servers.push({ id: signingServer.client_id, audiences: ['agent-api'], jwks });
  service = await startTestService({ environment, registry });
  const issuer = new URL(environment.AUTH_URL);
  const response = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
  server = await oauth.processDiscoveryResponse(issuer, response);
});
afterAll(() => Promise.all([service?.stop(), keys?.stop()]));

interface Authorized {
  /** The URL that the browser was redirected to at the end. */
  callback: URL;
  state: string;
  verifier: string;
}

/** Opens the authorization endpoint of the metadata, as the manual of the library describes. */
async function authorize(client: oauth.Client, redirectUri: string) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const authorizationUrl = new URL(server.authorization_endpoint as string);
  const parameters = {
    ...{ client_id: client.client_id, redirect_uri: redirectUri, response_type: 'code', scope: 'customers:own', state },
    ...{ code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
  };
  for (const [name, value] of Object.entries(parameters)) authorizationUrl.searchParams.set(name, String(value));
  const browser = new AgentBrowser(service);
  const page = await browser.send('GET', authorizationUrl.href.slice(service.url.length));
  const signedIn = await browser.submit(page, ACME_AGENT, undefined, { origin: service.url });
  const next = await browser.follow(signedIn);
  const allow = () => browser.submit(next, { decision: 'allow' }, undefined, { origin: service.url });
  const response = isForm(next, '/consent') ? await allow() : next;
  return { callback: new URL(targetOf(response)), state, verifier } satisfies Authorized;
}

async function exchange(client: oauth.Client, proof: oauth.ClientAuth, redirectUri: string, authorized: Authorized) {
  const { callback, state, verifier } = authorized;
  const parameters = oauth.validateAuthResponse(server, client, callback, state);
  const response = await oauth.authorizationCodeGrantRequest(
    ...([server, client, proof, parameters, redirectUri, verifier, insecure] as const),
  );
  return oauth.processAuthorizationCodeResponse(server, client, response);
}

async function refresh(client: oauth.Client, proof: oauth.ClientAuth, token = '') {
  const response = await oauth.refreshTokenGrantRequest(server, client, proof, token, insecure);
  return oauth.processRefreshTokenResponse(server, client, response);
}

describe('an OAuth client library that is configured from the metadata alone', () => {
  it.each<[string, oauth.Client, oauth.ClientAuth, string]>([
    ['a server application, by client_secret_basic', backend, byBasic, BACKEND_CALLBACK],
    ['a server application, by client_secret_post', backend, oauth.ClientSecretPost(BACKEND_SECRET), BACKEND_CALLBACK],
    ['a server application, by private_key_jwt', signing, byKey, BACKEND_CALLBACK],
    ['a native application, without a secret', native, oauth.None(), NATIVE_CALLBACK],
  ])(
    'gets tokens by the code flow with PKCE, and refreshes and uses them: %s',
    async (_, client, proof, redirectUri) => {
      const authorized = await authorize(client, redirectUri);
      expect(authorized.callback.searchParams.get('iss')).toBe(service.url);
      const first = await exchange(client, proof, redirectUri, authorized);
      expect(first).toMatchObject({ token_type: 'bearer', expires_in: 28_800, organization_id: ACME });
      const next = await refresh(client, proof, first.refresh_token);
      expect(next.access_token).not.toBe(first.access_token);
      const url = new URL(service.url + TOKEN);
      const body = JSON.stringify(agentTokenBody({ client_id: client.client_id }));
      const headers = new Headers({ 'content-type': 'application/json' });
      const response = await oauth.protectedResourceRequest(next.access_token, 'POST', url, headers, body, insecure);
      expect(await response.json()).toMatchObject({ organization_id: ACME, client_id: client.client_id });
    },
  );

  it('introspects a token by private_key_jwt, at the endpoint that the management port names', async () => {
    const { access_token } = await exchange(
      signing,
      byKey,
      BACKEND_CALLBACK,
      await authorize(signing, BACKEND_CALLBACK),
    );
    const path = '/.well-known/oauth-authorization-server';
    const { body } = await manage(service, 'GET', path);
    const inCluster = { ...server, introspection_endpoint: body.introspection_endpoint };
    const response = await oauth.introspectionRequest(inCluster, signingServer, byKey, access_token, insecure);
    const introspected = await oauth.processIntrospectionResponse(inCluster, signingServer, response);
    expect(introspected).toMatchObject({ active: true, client_id: signing.client_id });
  });

  it('gets tokens by private_key_jwt and client_credentials with openid-client', async () => {
    const [{ privateKey, kid }] = keys.keys as [TestIssuer['keys'][number]];
    const proof = openid.PrivateKeyJwt({ key: privateKey, kid });
    const options = { algorithm: 'oauth2' as const, execute: [openid.allowInsecureRequests] };
    const configuration = await openid.discovery(new URL(service.url), signing.client_id, {}, proof, options);
    for (let request = 0; request < 2; request++) {
      const tokens = await openid.clientCredentialsGrant(configuration, { scope: 'customers:own' });
      expect(tokens).toMatchObject({ expires_in: 28_800, scope: 'customers:own', organization_id: ACME });
      expect(tokens.refresh_token).toBeUndefined();
    }
  });

  it('rejects a response from another issuer (RFC 9207)', async () => {
    const { callback, state } = await authorize(backend, BACKEND_CALLBACK);
    callback.searchParams.set('iss', 'https://evil.example');
    expect(() => oauth.validateAuthResponse(server, backend, callback, state)).toThrow(/iss/);
  });
});
