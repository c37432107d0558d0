import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isoFormatter } from '../../src/introspection/feed/revocation-feed.controller.js';

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

it('isoFormatter formats any times in any order like toISOString', () => {
  const anyTime = fc.integer({ min: 0, max: LAST_MS });
  const nearTime = fc.integer({ min: 0, max: 3_000 });
  fc.assert(
    fc.property(fc.array(fc.oneof(anyTime, nearTime)), (times) => {
      expect(times.map(isoFormatter())).toEqual(times.map((time) => new Date(time).toISOString()));
    }),
  );
});
