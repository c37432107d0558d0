import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grantedScope } from '../../src/agent-auth/agent-token-issuer.js';
import { readAuthorizationRequest } from '../../src/agent-auth/page/authorization-request.js';
import { errorParameters, responseUrl } from '../../src/agent-auth/page/authorization-response.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { ClientApplication, type ClientType } from '../../src/registry/client-application.entity.js';
import { type Registry } from '../../src/registry/registry.js';
import { pkce } from '../support/agent-tokens.js';
import { type Query, queryOf } from '../support/authorization-page.js';

const CALLBACK = 'https://app.example/callback?tenant=1';
const LOOPBACK = ['http://127.0.0.1/callback', 'http://[::1]:8080/callback?a=b'];
const clients = new Map(
  (['web', 'server', 'native'] as const).map((clientType) => [clientType, clientOf(clientType)] as const),
);
const registry = { client: (id: string) => clients.get(id as ClientType) } as unknown as Registry;

function clientOf(clientType: ClientType): ClientApplication {
  const redirectUris = [CALLBACK, 'https://app.example/', 'com.example.app:/done', ...LOOPBACK];
  // `prefix` admits URIs below the registered ones for the cookie grant. The authorization page must ignore it.
  const registered = { redirectUris, redirectUriMatch: 'prefix' };
  return Object.assign(new ClientApplication(), { clientId: clientType, clientType, ...registered });
}

const read = (parameters: Query) => readAuthorizationRequest(queryOf(parameters), registry);
const forCode = { client_id: 'server', redirect_uri: CALLBACK, response_type: 'code' };

describe('a request to the authorization page', () => {
  it('is read with all its parameters if it is valid', () => {
    const { asked } = pkce();
    const all = { ...forCode, ...asked, state: 's', scope: 'a b', prompt: 'login consent' };
    expect(read(all)).toEqual({
      client: clients.get('server'),
      ...{ redirectUri: CALLBACK, responseType: 'code', state: 's', scope: 'a b', prompt: ['login', 'consent'] },
      ...{ codeChallenge: asked.code_challenge, violation: undefined, query: queryOf(all) },
    });
  });

  it.each([
    'http://127.0.0.1/callback',
    'http://127.0.0.1:1/callback',
    'http://127.0.0.1:65535/callback',
    'http://[::1]:51004/callback?a=b',
    'http://[::1]/callback?a=b',
  ])('of a native application may have a loopback redirect URI with any port (RFC 8252 §7.3): %s', (redirect_uri) => {
    const ofNative = { client_id: 'native', response_type: 'code', redirect_uri, ...pkce().asked };
    expect(read(ofNative)).toMatchObject({ redirectUri: redirect_uri, violation: undefined });
    for (const client_id of ['server', 'web'])
      if (!LOOPBACK.includes(redirect_uri))
        expect(() => read({ ...ofNative, client_id }), client_id).toThrow(OAuthError);
  });

  it.each([
    'http://127.0.0.1:65536/callback',
    'http://127.0.0.1:/callback',
    'http://127.0.0.1:80a/callback',
    'http://127.0.0.1:80/callback/',
    'http://127.0.0.1:80/callback?a=b',
    'http://127.0.0.1:80@evil.example/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://127.0.0.2:80/callback',
    'http://localhost:80/callback',
    'http://[::1]:80/callback',
    'https://127.0.0.1:80/callback',
    'https://app.example:444/',
    `http://127.0.0.1:80/callback${'x'.repeat(2_000)}`,
  ])(
    'of a native application is rejected with a redirect URI that differs in more than the port: %s',
    (redirect_uri) => {
      const ofNative = { client_id: 'native', response_type: 'code', redirect_uri, ...pkce().asked };
      expect(() => read(ofNative)).toThrow(OAuthError);
    },
  );

  it('is rejected if its redirect URI is not exactly a registered one', () => {
    const registered = clients.get('server')?.redirectUris as string[];
    const near = fc
      .constantFrom(...registered)
      .chain((uri) =>
        fc
          .record({ at: fc.nat(uri.length), text: fc.string({ unit: 'binary', maxLength: 3 }), cut: fc.nat(2) })
          .map(({ at, text, cut }) => uri.slice(0, at) + text + uri.slice(at + cut)),
      );
    const below = fc
      .tuple(fc.constantFrom(...registered), fc.webPath())
      .map(([uri, path]) => uri.replace(/\/$/, '') + path);
    fc.assert(
      fc.property(fc.oneof(near, below, fc.webUrl(), fc.string()), (redirect_uri) => {
        const open = () => read({ ...forCode, redirect_uri });
        // URLSearchParams replaces a lone surrogate in a query.
        if (registered.includes(redirect_uri)) expect(open().redirectUri).toBe(redirect_uri);
        else expect(open).toThrow(OAuthError);
      }),
    );
  });

  it('never has a redirect URI that its client did not register, for any query', () => {
    const name = fc.constantFrom('client_id', 'redirect_uri', 'response_type', 'state', 'prompt', 'flow', 'x');
    const value = fc.oneof(fc.constantFrom('web', 'server', CALLBACK, 'code', 'token', 'none'), fc.string());
    const pairs = fc.array(fc.tuple(name, value)).map((all) => new URLSearchParams(all).toString());
    fc.assert(
      fc.property(fc.oneof(pairs, fc.string()), (query) => {
        try {
          const { client, redirectUri } = readAuthorizationRequest(query, registry);
          expect(client.redirectUris).toContain(redirectUri);
        } catch (error) {
          expect(error).toBeInstanceOf(OAuthError);
        }
      }),
    );
  });

  it.each<[ClientType, string, string | undefined]>([
    ['web', 'token', undefined],
    ['web', 'code', 'response_type: must be token for this type of client'],
    ['server', 'code', undefined],
    ['server', 'token', 'response_type: must be code for this type of client'],
    ['native', 'code', 'code_challenge: required for a native application'],
    ['native', 'token', 'response_type: must be code for this type of client'],
  ])('of a %s application with response_type=%s has the error hint %j', (client_id, response_type, hint) => {
    expect(read({ client_id, redirect_uri: CALLBACK, response_type }).violation).toBe(hint);
  });

  const { asked } = pkce();
  const forNative: Query = { ...forCode, ...asked, client_id: 'native' };
  const forToken: Query = { ...forCode, client_id: 'web', response_type: 'token' };
  it.each<[Query, string]>([
    [{ ...forToken, response_type: undefined }, 'response_type: required'],
    [{ ...forCode, response_type: 'code token' }, 'response_type: must be code'],
    [{ ...forToken, scope: ['customers:own', 'x'] }, 'scope: given more'],
    [{ ...forNative, code_challenge: ['x', 'y'] }, 'code_challenge: given more'],
    [{ ...forNative, code_challenge_method: undefined }, 'code_challenge_method: must'],
    [{ ...forCode, code_challenge: asked.code_challenge }, 'code_challenge_method: must'],
    [{ ...forNative, code_challenge_method: 'plain' }, 'code_challenge_method: must'],
    [{ ...forCode, code_challenge_method: 'S256' }, 'code_challenge: required'],
    [{ ...forNative, code_challenge: 'x'.repeat(42) }, 'code_challenge: must be 43'],
    [{ ...forToken, ...asked }, 'code_challenge: only with'],
    [{ ...forToken, prompt: 'none login' }, 'prompt: none excludes other values'],
  ])('has an error hint if it is invalid: %j', (parameters, hint) => {
    expect(read(parameters).violation?.startsWith(hint)).toBe(true);
  });

  it('may have any state of visible characters and gets the same state back', () => {
    const visible = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1000 });
    fc.assert(
      fc.property(visible, fc.constantFrom('server', 'web'), (state, client_id) => {
        const response_type = client_id === 'web' ? 'token' : 'code';
        const request = read({ ...forCode, client_id, response_type, state });
        expect(request.violation).toBeUndefined();
        const target = responseUrl(request, { code: 'a:b' }, 'https://auth.example');
        expect(target).toMatch(/^[\x21-\x7e]+$/);
        const { search, hash } = new URL(target);
        const response = new URLSearchParams(client_id === 'web' ? hash.slice(1) : search);
        expect(response.get('state')).toBe(state);
        expect(response.get('code')).toBe('a:b');
        expect(response.get('iss')).toBe('https://auth.example');
        expect(new URLSearchParams(search).get('tenant')).toBe('1');
      }),
    );
  });

  it.each(['ä', 'a\nb', 'x'.repeat(1001)])('is rejected with the state %j', (state) => {
    expect(read({ ...forCode, state }).violation).toMatch(/^state: /);
  });
});

it('the response to an application describes an error in the characters that RFC 6749 allows', () => {
  for (const error of ['access_denied', 'invalid_scope', 'login_required', 'consent_required', 'invalid_request']) {
    const { error_description } = errorParameters(error, '');
    expect(error_description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
    expect(error_description).not.toBe(error);
  }
});

const CLIENT = ['customers:own', 'agents:read', 'reports:read'];
const AGENT = ['reports:read', 'customers:own', 'other'];

describe('the granted scope', () => {
  it.each([
    ['requested twice', 'customers:own customers:own', 'customers:own'],
    ['requested with additional spaces', '  customers:own  ', 'customers:own'],
    ['omitted, which requests every scope that client and agent share', undefined, 'customers:own reports:read'],
    ['empty', '', ''],
    ['separated by commas', 'customers:own,reports:read', ''],
    ['the name of an array property', 'length constructor __proto__', ''],
  ])('is right for a scope parameter that is %s', (_, requested, granted) => {
    expect(grantedScope(requested, CLIENT, AGENT)).toBe(granted);
  });

  it('is the intersection of the scopes of the request, the client and the agent', () => {
    const scopes = fc.subarray(['a', 'b', 'c', 'd', 'e']);
    fc.assert(
      fc.property(scopes, scopes, scopes, (requested, client, agent) => {
        const granted = grantedScope(requested.join(' '), client, agent);
        const all = requested.filter((scope) => client.includes(scope) && agent.includes(scope));
        expect(granted).toBe(all.join(' '));
      }),
    );
  });
});
