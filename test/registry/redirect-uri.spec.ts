import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClientApplication } from '../../src/registry/client-application.entity.js';
import { isOrigin, isRegistrableRedirectUri } from '../../src/registry/redirect-uri.js';

const REGISTERED = 'https://acme.example/app';

describe('the redirect URIs that a client admits', () => {
  it('are exactly the registered URIs', () => {
    const client = Object.assign(new ClientApplication(), { redirectUris: [REGISTERED] });
    expect(client.admitsRedirectUri(REGISTERED)).toBe(true);
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), (uri) => {
        expect(client.admitsRedirectUri(uri)).toBe(uri === REGISTERED);
      }),
    );
    for (const near of [`${REGISTERED}/x`, `${REGISTERED}/`, ` ${REGISTERED}`, 'https://ACME.example/app'])
      expect(client.admitsRedirectUri(near)).toBe(false);
  });
});

describe('a redirect URI that may be registered', () => {
  it.each(['https://acme.example/chat/', 'http://localhost:3000/', 'https://acme.example', 'https://a.example/?x=1'])(
    'is absolute http(s): %s',
    (uri) => {
      expect(isRegistrableRedirectUri(uri, false)).toBe(true);
    },
  );

  it('may have a private-use scheme, a reversed domain name, for a native client only', () => {
    expect(isRegistrableRedirectUri('example.acme:/callback', true)).toBe(true);
    expect(isRegistrableRedirectUri('example.acme:/callback', false)).toBe(false);
    expect(isRegistrableRedirectUri('acme:/callback', true)).toBe(false);
  });

  it.each([
    '',
    '//acme.example/',
    'https:acme.example',
    'https://acme.example/#',
    'https://user@acme.example/',
    'https:\\\\acme.example/',
    'https://acme.example\\@evil.example/',
    'https://acme.example/ x',
    'https://acme.example/\n',
    'javascript:alert(1)',
    'blob:https://acme.example/x',
    'ftp://acme.example/',
  ])('is not %j, for any client', (uri) => {
    expect(isRegistrableRedirectUri(uri, false)).toBe(false);
    expect(isRegistrableRedirectUri(uri, true)).toBe(false);
  });
});

describe('an origin in the format that browsers send', () => {
  it.each(['https://acme.example', 'http://localhost:3000', 'https://xn--bcher-kva.example', 'capacitor://localhost'])(
    'is %s',
    (text) => {
      expect(isOrigin(text)).toBe(true);
    },
  );

  it.each([
    'null',
    '',
    'https://acme.example/',
    'https://acme.example:443',
    'https://ACME.example',
    'https://bücher.example',
    'https://user@acme.example',
    'https://acme.example?x',
    'https://acme.example https://evil.example',
    'acme.example',
  ])('is not %j', (text) => {
    expect(isOrigin(text)).toBe(false);
  });
});
