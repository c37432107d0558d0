import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClientApplication } from '../../src/registry/client-application.entity.js';
import { isBelow, isOrigin, isRegistrableRedirectUri } from '../../src/registry/redirect-uri.js';
import { randomRuns } from '../nightly.js';

const REGISTERED = 'https://acme.example/app';

describe('a redirect URI below a registered one', () => {
  it.each(['/', '/x', '/x/y', '/x/y/', '/a.b', '/..a', '/a..', '/...', '/x%20y', "/~!$&'()*+,;=:@"])(
    'is admitted: %s',
    (rest) => {
      expect(isBelow(REGISTERED + rest, REGISTERED)).toBe(true);
    },
  );

  it.each([
    ['nothing after the registered URI', REGISTERED],
    ['no slash after the registered URI', `${REGISTERED}le`],
    ['another scheme', 'http://acme.example/app/x'],
    ['the default port, written out', 'https://acme.example:443/app/x'],
    ['another port', 'https://acme.example:8443/app/x'],
    ['another host', 'https://evil.example/app/x'],
    ['a host that ends like it', 'https://evilacme.example/app/x'],
    ['a host that begins like it', 'https://acme.example.evil.example/app/x'],
    ['a host with a dot at its end', 'https://acme.example./app/x'],
    ['userinfo', 'https://acme.example@evil.example/app/x'],
    ['userinfo before the right host', 'https://user@acme.example/app/x'],
    ['a host in upper case', 'https://ACME.example/app/x'],
    ['a path in upper case', 'https://acme.example/APP/x'],
    ['an empty path segment', `${REGISTERED}//evil.example`],
    ['a query', `${REGISTERED}/x?y=z`],
    ['an empty query', `${REGISTERED}/x?`],
    ['a fragment', `${REGISTERED}/x#y`],
    ['an empty fragment', `${REGISTERED}/x#`],
    ['a backslash', `${REGISTERED}/x\\y`],
    ['dot segments', `${REGISTERED}/../x`],
    ['dot segments at the end', `${REGISTERED}/x/..`],
    ['a dot segment', `${REGISTERED}/./x`],
    ['dot segments with a path parameter', `${REGISTERED}/..;/x`],
    ['encoded dot segments', `${REGISTERED}/%2e%2e/x`],
    ['half encoded dot segments', `${REGISTERED}/.%2E/x`],
    ['an encoded slash', `${REGISTERED}/x%2fy`],
    ['an encoded slash in upper case', `${REGISTERED}/x%2Fy`],
    ['an encoded backslash', `${REGISTERED}/x%5Cy`],
    ['an encoded zero byte', `${REGISTERED}/x%00`],
    ['a broken percent-encoding', `${REGISTERED}/x%2`],
    ['a space', `${REGISTERED}/x y`],
    ['a line break', `${REGISTERED}/x\n`],
    ['a tab, which URL parsers drop', `${REGISTERED}/.\t./x`],
    ['bytes outside ASCII', `${REGISTERED}/ä`],
    ['the fullwidth solidus', `${REGISTERED}/..／x`],
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

  it('is admitted for any number of plain path segments', () => {
    const segment = fc.stringMatching(/^[a-z0-9_-]{1,8}$/);
    fc.assert(
      fc.property(fc.array(segment), (segments) => {
        expect(isBelow(`${REGISTERED}/${segments.join('/')}`, REGISTERED)).toBe(true);
      }),
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
    expect(client('exact').admitsRedirectUri(`${REGISTERED}/x`)).toBe(false);
  });

  it.each([
    ...['', '/app', '//acme.example/app', 'https:/acme.example/app', 'javascript:alert(1)', '*', 'https://*'],
    ...['http://acme.example/app', 'HTTPS://acme.example/app', 'https://ACME.example/app', 'https://acme.example/App'],
    ...['https://acme.example:443/app', 'https://acme.example./app', 'https://evilacme.example/app'],
    ...['https://acme.example@evil.example/app', 'https://evil.example\\@acme.example/app'],
    ...[`${REGISTERED}/`, `${REGISTERED}?`, `${REGISTERED}?code=1`, `${REGISTERED}#`, `${REGISTERED};x`],
    ...[` ${REGISTERED}`, `${REGISTERED} `, `${REGISTERED}\n`, `${REGISTERED}\0`, 'https://acme\t.example/app'],
    ...['https://acme.example/./app', 'https://acme.example/x/../app', 'https://acme.example/%61pp'],
    ...['https://аcme.example/app', 'https://acme。example/app'],
  ])('are not %j for an exact client', (uri) => {
    expect(client('exact').admitsRedirectUri(uri)).toBe(false);
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
    '/chat/',
    'acme.example/chat',
    '//acme.example/',
    'https:acme.example',
    'https:///acme.example',
    'https://',
    'https://acme.example/#',
    'https://acme.example/#x',
    'https://user@acme.example/',
    'https://user:word@acme.example/',
    'https:\\\\acme.example/',
    'https://acme.example\\@evil.example/',
    'https://acme.example/ x',
    ' https://acme.example/',
    'https://acme.example/\n',
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:https://acme.example/x',
    'ftp://acme.example/',
    'wss://acme.example/',
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
    '*',
    'https://acme.example/',
    'https://acme.example:443',
    'https://ACME.example',
    'HTTPS://acme.example',
    'https://bücher.example',
    'https://user@acme.example',
    'https://acme.example?x',
    'https://acme.example#x',
    'https://acme.example https://evil.example',
    'https://*.acme.example\n',
    'acme.example',
  ])('is not %j', (text) => {
    expect(isOrigin(text)).toBe(false);
  });

  it('is the origin of any http(s) URL', () => {
    fc.assert(
      fc.property(fc.webUrl(), (url) => {
        expect(isOrigin(new URL(url).origin)).toBe(true);
      }),
    );
  });
});

function joined(parts: string[]): string {
  return parts.join('');
}
