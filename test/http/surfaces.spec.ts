import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitSurface, targetOn } from '../../src/platform/http/surfaces.js';

describe('protocol §1.5: a request reaches only the surface of its port', () => {
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
      expect(splitSurface(route)).toBeUndefined();
    },
  );
});
