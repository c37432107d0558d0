import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isOnSurface, targetOn } from '../../src/platform/http/surfaces.js';

describe('protocol §1.5: a request reaches only the surface of its port', () => {
  it.each([
    ['/', '/public/'],
    ['/v2/customer/token', '/public/v2/customer/token'],
    ['/v2/customer/token?x=1', '/public/v2/customer/token?x=1'],
    ['/public/x', '/public/public/x'],
    ['//auth.example/x', '/public//auth.example/x'],
    ['/../management/x', '/public/../management/x'],
    ['http://auth.example/v2/customer/token?x=1', '/public/v2/customer/token?x=1'],
    ['http://auth.example', '/public/'],
    ['http://auth.example/../management/x', '/public/management/x'],
    ['*', '/'],
    ['javascript://.?response_type=token', '/'],
    ['ftp://auth.example/v2/customer/token', '/'],
    ['/v2\\customer\\token#', '/'],
    ['/v2\\customer\\token?\xa0', '/'],
    ['', '/'],
    ['http://', '/'],
  ])('so that %s becomes %s', (target, expected) => expect(targetOn('public', target)).toBe(expected));

  it('for any request target', () => {
    const authority = fc.webUrl({ withQueryParameters: true, withFragments: true });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          authority,
          fc.webPath().map((path) => `/${path}`),
        ),
        (target) => {
          expect(targetOn('public', target)).toMatch(/^\/(public|$)/);
          expect(targetOn('management', target)).toMatch(/^\/(management|$)/);
        },
      ),
    );
  });

  it.each(['/', '/x', '/*rest', '/:one/:two', '/publicity/x', 'public/x', ''])(
    'and %j is a route of no surface',
    (route) => {
      expect(isOnSurface(route)).toBe(false);
    },
  );
});
