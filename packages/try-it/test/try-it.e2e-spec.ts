import { describe, expect, it } from 'vitest';
import { expectError } from '../../../test/support/expect-error.js';
import { serviceOfTest, useService } from '../../../test/support/use-service.js';
import { demoEntries } from '../src/demo-registry.js';
import { TryItModule } from '../src/try-it.module.js';

const AUTH = 'https://auth.example';
const PAGES = ['/try', '/try/second-browser', '/try/signed-in'];
const BACKEND = '/try/backend/customer';
const FILES = '/try/files/';
const DIRECTIVES = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
];
const MARKUP = '/tmp/"><img src=x>';

const modules = [TryItModule];

// cspell:ignore ftry fviews fpackage fetc fpasswd
const environment = { TRY_IT: 'true', DATA_DIR: MARKUP };
const service = useService({ registry: demoEntries(AUTH), modules, environment });

/** The URL of each file that a page or a script refers to. */
const referencesIn = (text: string) =>
  [...text.matchAll(/(?:src|href)="([^"#]+)"|from '\.\/([\w.-]+)'/g)].map(([, url, module]) => url ?? FILES + module);

it('protocol §11: without TRY_IT, no route of the try-it page exists, in the service or in its OpenAPI document', async () => {
  const plain = await serviceOfTest({ registry: demoEntries(AUTH), modules });
  for (const path of [...PAGES, `${FILES}try-it.js`, BACKEND, '/try/assertion']) {
    const isPage = path.startsWith(FILES) || PAGES.includes(path);
    const response = await plain.send(isPage ? 'GET' : 'POST', path, { origin: plain.url });
    expectError(response, { status: 404, error: 'not_found', hint: undefined });
  }
  const document = await (await fetch(`${plain.managementUrl}/openapi.json`)).text();
  expect(document).not.toContain('"/try');
});

describe('protocol §11: the pages below /try', () => {
  it.each(PAGES)('%s has a strict policy, no inline script or style, and nothing from other hosts', async (path) => {
    const { status, headers, text, cookies } = await service.send('GET', path);
    expect(status).toBe(200);
    expect(headers.get('content-security-policy')?.split('; ')).toEqual(DIRECTIVES);
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(cookies).toEqual([]);
    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i);
    for (const [script] of text.matchAll(/<script[^>]*>[^<]*/g)) expect(script).toMatch(/ src="\/try\/files\/[^"]+">$/);
    for (const url of referencesIn(text)) expect(new URL(url, AUTH).origin).toBe(AUTH);
  });

  it('refer only to files that the service serves, directly and by imports', async () => {
    const seen = new Map<string, string | null>();
    const visit = async (path: string): Promise<void> => {
      if (seen.has(path) || !/\.(js|css|svg)$/.test(path)) return;
      const { status, headers, text } = await service.send('GET', path);
      expect({ path, status }).toEqual({ path, status: 200 });
      seen.set(path, headers.get('content-type'));
      for (const next of path.endsWith('.js') ? referencesIn(text) : []) await visit(next);
    };
    for (const page of PAGES) {
      for (const path of referencesIn((await service.send('GET', page)).text)) await visit(path);
    }
    expect(Object.fromEntries(seen)).toMatchObject({
      [`${FILES}try-it.js`]: 'text/javascript; charset=utf-8',
      [`${FILES}qr.js`]: 'text/javascript; charset=utf-8',
      [`${FILES}try-it.css`]: 'text/css; charset=utf-8',
      [`${FILES}icon.svg`]: 'image/svg+xml',
    });
  });

  it.each([
    ...['qr.d.ts', 'layout.eta', '__proto__', 'constructor', '..%2fpackage.json', '..%2fviews%2ftry.eta'],
    ...['%2fetc%2fpasswd', 'try-it.js%00', 'TRY-IT.JS'],
  ])('do not serve %s as a file', async (name) => {
    expect((await service.send('GET', FILES + name)).status).toBe(404);
  });

  it('come last in the OpenAPI document', async () => {
    const paths = Object.keys((await service.send('GET', '/openapi.json')).body.paths);
    expect(paths[0]).toBe('/v2/customer/token');
    expect(paths.slice(0, paths.indexOf('/try')).filter((path) => path.startsWith('/try'))).toEqual([]);
    expect(paths.slice(paths.indexOf('/try')).filter((path) => !path.startsWith('/try'))).toEqual([]);
  });

  it('show a folder name with markup as text', async () => {
    const { text } = await service.send('GET', '/try');
    expect(text).not.toContain('<img');
    expect(text).toContain('&lt;img src=x&gt;');
  });
});

const HINT = 'The try-it page is not available';

it.each([
  ['the registry of the tests', undefined, 'is not the demo registry'],
  ['a demo registry for another AUTH_URL', demoEntries('https://other.example'), 'was made for another AUTH_URL'],
])(
  'protocol §11: with another registry than that of the demo, the pages explain what is missing, and the backend does not exist: %s',
  async (_what, registry, reason) => {
    const other = await serviceOfTest({ ...(registry && { registry }), modules, environment: { TRY_IT: 'true' } });
    for (const page of PAGES) {
      const { status, text, headers } = await other.send('GET', page);
      expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(text).toContain(HINT);
      expect(text).toContain(reason);
    }
    const response = await other.post(BACKEND, { external_id: 'user-1' }, { origin: other.url });
    expectError(response, { status: 404, error: 'not_found', hint: undefined });
  },
);
