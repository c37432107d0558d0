import { describe, expect, it } from 'vitest';
import { byVersion, differences, raised } from '../../scripts/release-differences.js';

const ROUTE = 'route POST /v2/customer/token';

describe('the promises of a release (docs/releases)', () => {
  it.each([
    ['a metric that is gone', ['metric requests_total counter'], [], 'major'],
    ['a route that is gone', [ROUTE], [], 'major'],
    [
      'another type of a parameter in the public surface',
      ['surface grant: f(a: string)'],
      ['surface grant: f(a: Date)'],
      'major',
    ],
    ['a field that a request must have', [ROUTE], [ROUTE, `${ROUTE} body application/json reason required`], 'major'],
    ['a query parameter that a request must have', [ROUTE], [ROUTE, `${ROUTE} query reason required`], 'major'],
    ['a field that a request may have', [ROUTE], [ROUTE, `${ROUTE} body application/json reason`], 'minor'],
    ['a field that each response has', [ROUTE], [ROUTE, `${ROUTE} 200 application/json reason required`], 'minor'],
    ['a variable', [], ['variable NAME'], 'minor'],
  ])('%s needs a version of its kind', (_, before, after, kind) => {
    expect(differences(before, after).map((each) => each.kind)).toContain(kind);
    expect(differences(before, after).some((each) => each.kind === 'major')).toBe(kind === 'major');
  });

  it('need no new version if they are the same', () => {
    expect(differences([ROUTE], [ROUTE])).toEqual([]);
  });

  it.each([
    ['1.9.4', '2.0.0', 'major'],
    ['1.9.4', '1.10.0', 'minor'],
    ['1.9.4', '1.9.5', 'patch'],
  ])('from %s to %s the %s version is raised', (before, after, part) => {
    expect(raised(before, after)).toBe(part);
    expect(byVersion(before, after)).toBeLessThan(0);
  });
});
