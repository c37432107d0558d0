import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClientApplication } from '../../src/registry/client-application.entity.js';
import { isBelow, isOrigin, isRegistrableRedirectUri } from '../../src/registry/redirect-uri.js';
import { randomRuns } from '../nightly.js';

const REGISTERED = 'https://acme.example/app';

describe('a redirect URI below a registered one', () => {
  it.each(['/', '/x/y/', '/..a', '/...', "/~!$&'()*+,;=:@"])('is admitted: %s', (rest) => {
    expect(isBelow(REGISTERED + rest, REGISTERED)).toBe(true);
  });

  it.each([
    ['nothing after the registered URI', REGISTERED],
    ['an empty path segment', `${REGISTERED}//evil.example`],
    ['an empty fragment', `${REGISTERED}/x#`],
    ['dot segments with a path parameter', `${REGISTERED}/..;/x`],
    ['encoded dot segments', `${REGISTERED}/%2e%2e/x`],
    ['an encoded slash', `${REGISTERED}/x%2fy`],
    ['an encoded zero byte', `${REGISTERED}/x%00`],
    ['a broken percent-encoding', `${REGISTERED}/x%2`],
  ])('is rejected with %s', (_, uri) => {
    expect(isBelow(uri, REGISTERED)).toBe(false);
  });

  it.each([
    ['a slash at its end', 'https://acme.example/app/', 'https://acme.example/app/x', true],
    ['no path', 'https://acme.example', 'https://acme.example/x', true],
    ['no path, against a longer host', 'https://acme.example', 'https://acme.example.evil.example/', false],
    ['a query', 'https://acme.example/app?x=', 'https://acme.example/app?x=/y', false],
  ])('is compared with a registered URI that has %s', (_, registered, uri, admitted) => {
    expect(isBelow(uri, registered)).toBe(admitted);
  });

  it('never leaves the origin and the path of the registered URI, for any suffix', () => {
    const nasty = ['.', '..', '/', '\\', '%2e', '%2F', '%5c', '@', ':', '?', '#', ';', '\t', '\n', 'x', 'evil.example'];
    const tail = fc.array(fc.oneof(fc.constantFrom(...nasty), fc.string({ unit: 'binary', maxLength: 3 }))).map(joined);
    const bases = ['https://acme.example', 'https://acme.example/', REGISTERED, `${REGISTERED}/`, `${REGISTERED}/a.b`];
    fc.assert(
      fc.property(fc.constantFrom(...bases), fc.constantFrom('', '/'), tail, (registered, boundary, rest) => {
        const uri = registered + boundary + rest;
        if (!isBelow(uri, registered)) return;
        const [base, found] = [new URL(registered), new URL(uri)];
        expect(found.origin).toBe(base.origin);
        expect(found.pathname.startsWith(base.pathname.replace(/\/?$/, '/'))).toBe(true);
        expect([found.search, found.hash, found.username, found.password]).toEqual(['', '', '', '']);
        expect(found.href).toBe(uri);
      }),
      randomRuns(5_000),
    );
  });
});

describe('the redirect URIs that a client admits', () => {
  const client = (redirectUriMatch: 'exact' | 'prefix') =>
    Object.assign(new ClientApplication(), { redirectUris: [REGISTERED], redirectUriMatch });

  it('are exactly the registered URIs for an exact client', () => {
    expect(client('exact').admitsRedirectUri(REGISTERED)).toBe(true);
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), (uri) => {
        expect(client('exact').admitsRedirectUri(uri)).toBe(uri === REGISTERED);
      }),
    );
    for (const near of [`${REGISTERED}/x`, `${REGISTERED}/`, ` ${REGISTERED}`, 'https://ACME.example/app'])
      expect(client('exact').admitsRedirectUri(near)).toBe(false);
  });

  it('are the registered URIs and the URIs below them for a prefix client', () => {
    expect(client('prefix').admitsRedirectUri(REGISTERED)).toBe(true);
    expect(client('prefix').admitsRedirectUri(`${REGISTERED}/x`)).toBe(true);
    expect(client('prefix').admitsRedirectUri('https://acme.example/')).toBe(false);
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

function joined(parts: string[]): string {
  return parts.join('');
}
