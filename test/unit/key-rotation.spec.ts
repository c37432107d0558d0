import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rotated, stateOf, withoutKey } from '../../src/access-token/key-rotation.js';
import { generateKey } from '../../src/access-token/key-set.js';

const NOW = 1_800_000_000;
const LIFE = 28_800;
/** As long as the JWKS may be kept: `Cache-Control: max-age=300`. */
const CACHED = 300;
const old = generateKey(NOW - 86_400);

describe('protocol §3.16: a rotated key set', () => {
  const { keys } = rotated({ keys: [old] }, NOW, LIFE);
  const [added, kept] = keys as [typeof old, typeof old & { exp: number }];

  it('has one more key, which is published longer than verifiers keep the JWKS before it signs', () => {
    expect(keys).toHaveLength(2);
    expect(added.nbf).toBeGreaterThan(NOW + 2 * CACHED);
    expect(stateOf(added, keys, NOW)).toBe('upcoming');
    expect(stateOf(kept, keys, NOW)).toBe('signing');
    expect(stateOf(added, keys, added.nbf)).toBe('signing');
    expect(stateOf(kept, keys, added.nbf)).toBe('verifying');
  });

  it('keeps the old key until the last token it has signed has expired, and no longer than it must', () => {
    expect(kept).toMatchObject({ ...old });
    expect(kept.exp).toBeGreaterThanOrEqual(added.nbf + LIFE);
    expect(kept.exp).toBeLessThan(added.nbf + LIFE + 300);
    expect(stateOf(kept, keys, kept.exp)).toBe('expired');
  });

  it('loses the keys that have expired, and no others', () => {
    const after = rotated({ keys }, kept.exp, LIFE).keys.map(({ kid }) => kid);
    expect(after).not.toContain(old.kid);
    expect(after).toContain(added.kid);
  });

  it('is not rotated again before its new key signs', () => {
    expect(() => rotated({ keys }, added.nbf - 1, LIFE)).toThrow(/nothing was changed/);
    expect(rotated({ keys }, added.nbf, LIFE).keys).toHaveLength(3);
  });

  it('never makes a key live longer than it was given', () => {
    const [, soon] = rotated({ keys: [{ ...old, exp: NOW + 5 }] }, NOW, LIFE).keys;
    expect(soon?.exp).toBe(NOW + 5);
  });

  it('always has a key that signs, at every moment until the next rotation, however often it was rotated', () => {
    const pauses = fc.array(fc.integer({ min: 901, max: 200_000 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(pauses, fc.integer({ min: 1, max: 400_000 }), (waits, life) => {
        let set = { keys: [old] };
        let now = NOW;
        for (const wait of waits) {
          set = rotated(set, now, life);
          const newest = Math.max(...set.keys.map(({ nbf }) => nbf));
          for (const at of [now, newest - 1, newest, now + wait]) {
            const states = set.keys.map((key) => stateOf(key, set.keys, at));
            expect(states.filter((state) => state === 'signing')).toHaveLength(1);
          }
          now += wait;
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe('protocol §9.3: a key that is retired', () => {
  const next = generateKey(NOW - 10);

  it('is gone', () => {
    expect(withoutKey({ keys: [next, old] }, old.kid, NOW).keys).toEqual([next]);
  });

  it('must exist', () => {
    expect(() => withoutKey({ keys: [old] }, next.kid, NOW)).toThrow(/no key of this kid/);
  });

  it.each([
    ['alone', []],
    ['beside one that does not sign yet', [generateKey(NOW + 1)]],
    ['beside one that has expired', [{ ...next, exp: NOW }]],
  ])('stays when it is the one that signs, %s', (_, others) => {
    expect(() => withoutKey({ keys: [old, ...others] }, old.kid, NOW)).toThrow(/no other key may sign now/);
  });
});
