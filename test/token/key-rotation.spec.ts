import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rotated, stateOf, withoutKey } from '../../src/access-token/key-rotation.js';
import { generateKey, newKeySet } from '../../src/access-token/key-set.js';

const NOW_SECONDS = 1_800_000_000;
const TOKEN_LIFETIME_SECONDS = 28_800;
const old = generateKey(NOW_SECONDS - 86_400);

describe('protocol §3.16: a rotated key set', () => {
  const { keys } = rotated({ keys: [old] }, NOW_SECONDS, TOKEN_LIFETIME_SECONDS);
  const [added, previous] = keys as [typeof old, typeof old & { exp: number }];

  it('publishes the old key until the last token that it signed has expired, and at most 300 s longer', () => {
    expect(previous).toMatchObject({ ...old });
    expect(previous.exp).toBeGreaterThanOrEqual(added.nbf + TOKEN_LIFETIME_SECONDS);
    expect(previous.exp).toBeLessThan(added.nbf + TOKEN_LIFETIME_SECONDS + 300);
    expect(stateOf(previous, keys, previous.exp)).toBe('expired');
  });

  it('drops exactly the keys that have expired', () => {
    const after = rotated({ keys }, previous.exp, TOKEN_LIFETIME_SECONDS).keys.map(({ kid }) => kid);
    expect(after).not.toContain(old.kid);
    expect(after).toContain(added.kid);
  });

  it('never extends the exp of a key', () => {
    const [, soon] = rotated({ keys: [{ ...old, exp: NOW_SECONDS + 5 }] }, NOW_SECONDS, TOKEN_LIFETIME_SECONDS).keys;
    expect(soon?.exp).toBe(NOW_SECONDS + 5);
  });

  it('has exactly one signing key at every time, after any number of rotations', () => {
    const intervals = fc.array(fc.integer({ min: 901, max: 200_000 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(intervals, fc.integer({ min: 1, max: 400_000 }), (intervalsSeconds, life) => {
        let set = { keys: [old] };
        let now = NOW_SECONDS;
        for (const interval of intervalsSeconds) {
          set = rotated(set, now, life);
          const newest = Math.max(...set.keys.map(({ nbf }) => nbf));
          for (const at of [now, newest - 1, newest, now + interval]) {
            const states = set.keys.map((key) => stateOf(key, set.keys, at));
            expect(states.filter((state) => state === 'signing')).toHaveLength(1);
          }
          now += interval;
        }
      }),
      { numRuns: 30 },
    );
  });
});

it('protocol §9.3: a new key set also signs in a process whose clock is a minute behind', () => {
  const [key] = newKeySet(NOW_SECONDS).keys;
  expect(key?.nbf).toBeLessThan(NOW_SECONDS - 60);
});

describe('protocol §9.3: the retirement of a key', () => {
  const next = generateKey(NOW_SECONDS - 10);

  it('is rejected if the key does not exist', () => {
    expect(() => withoutKey({ keys: [old] }, next.kid, NOW_SECONDS)).toThrow(/KID: no such key/);
  });

  it.each([
    ['as the only key', []],
    ['next to a key that does not sign yet', [generateKey(NOW_SECONDS + 1)]],
    ['next to a key that has expired', [{ ...next, exp: NOW_SECONDS }]],
  ])('is rejected if the key is the signing key, %s', (_, others) => {
    expect(() => withoutKey({ keys: [old, ...others] }, old.kid, NOW_SECONDS)).toThrow(/no other key may sign now/);
  });

  it('undoes a rotation: the key that was to expire signs without an end again', () => {
    const set = rotated({ keys: [old] }, NOW_SECONDS, TOKEN_LIFETIME_SECONDS);
    expect(withoutKey(set, String(set.keys[0]?.kid), NOW_SECONDS)).toEqual({ keys: [old] });
  });

  it('leaves the end of each other key if one of them has no end', () => {
    const others = [{ ...next, exp: NOW_SECONDS + 60 }, generateKey(NOW_SECONDS - 20)];
    expect(withoutKey({ keys: [old, ...others] }, old.kid, NOW_SECONDS)).toEqual({ keys: others });
  });
});
