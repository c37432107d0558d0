import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, parseRateLimit } from '../../src/platform/configuration/rate-limit-rule.js';
import { LimitCounts } from '../../src/platform/rate-limit/limit-counts.js';
import { networkOf } from '../../src/platform/rate-limit/network.js';

const MINUTE = 60_000;

describe('RATE_LIMIT', () => {
  it.each([
    ['identities=5/60', { ...DEFAULT_LIMITS, identities: { count: 5, seconds: 60 } }],
    [
      'tokens=1/1, sign_in=9/9',
      { ...DEFAULT_LIMITS, tokens: { count: 1, seconds: 1 }, sign_in: { count: 9, seconds: 9 } },
    ],
    ['off', 'off'],
  ])('%s keeps the default of what it leaves out', (text, rules) => {
    expect(parseRateLimit(text)).toEqual(rules);
  });

  it.each(['', 'on', 'identities', 'identities=0/60', 'identities=5', 'others=5/60', 'tokens=5/60,', '__proto__=1/1'])(
    'is faulty as %j',
    (text) => {
      expect(parseRateLimit(text)).toBe(text);
    },
  );
});

describe('the network of a caller', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7:5001'],
    ['203.0.113.7', '::ffff:203.0.113.7'],
    ['2001:db8:1:2::1', '[2001:db8:1:2::99]:443'],
    ['fe80::1', 'fe80::2%eth0'],
    ['', 'x'.repeat(5_000)],
    ['unknown', '203.0.113.7.8'],
  ])('of %s is that of %s', (one, other) => {
    expect(networkOf(one)).toBe(networkOf(other));
  });

  it('is another for another IPv4 address, and for another IPv6 /64', () => {
    expect(networkOf('203.0.113.7')).not.toBe(networkOf('203.0.113.8'));
    expect(networkOf('2001:db8:1:2::1')).not.toBe(networkOf('2001:db8:1:3::1'));
  });
});

describe('counts of a limit', () => {
  it('begin anew in each window', () => {
    const counts = new LimitCounts();
    expect([counts.add('a', 1, MINUTE), counts.add('a', 1, MINUTE), counts.add('b', 1, MINUTE)]).toEqual([1, 2, 1]);
    expect(counts.add('a', 2, MINUTE)).toBe(1);
  });

  it('of two processes add up to what both have counted, however their exchanges are interleaved', () => {
    const step = fc.record({ who: fc.integer({ min: 0, max: 1 }), does: fc.constantFrom('count', 'exchange') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const all = [new LimitCounts(), new LimitCounts()] as const;
        let store = 0;
        let counted = 0;
        const exchange = (counts: LimitCounts) => {
          for (const untold of counts.untold(10)) {
            store += untold.own;
            counts.told(untold, store);
          }
        };
        for (const { who, does } of steps) {
          const counts = all[who as 0 | 1];
          if (does === 'exchange') exchange(counts);
          else {
            counted++;
            expect(counts.add('key', 1, MINUTE)).toBeLessThanOrEqual(counted);
          }
        }
        for (const counts of [...all, ...all]) {
          counts.add('key', 1, MINUTE);
          counted++;
          exchange(counts);
        }
        expect(store).toBe(counted);
        expect(all[1].add('key', 1, MINUTE)).toBe(counted + 1);
      }),
    );
  });

  it('go on from what is known when an exchange fails, and are not told twice', () => {
    const counts = new LimitCounts();
    for (let hit = 0; hit < 3; hit++) counts.add('key', 1, MINUTE);
    for (const untold of counts.untold(10)) counts.kept(untold);
    expect(counts.untold(10)).toEqual([]);
    expect(counts.add('key', 1, MINUTE)).toBe(4);
    for (const untold of counts.untold(10)) counts.told(untold, 1);
    expect(counts.add('key', 1, MINUTE)).toBe(5);
  });

  it('of a window that is over are not mixed with those of the next', () => {
    const counts = new LimitCounts();
    counts.add('key', 1, MINUTE);
    const [late] = counts.untold(1);
    counts.add('key', 2, MINUTE);
    counts.told(late as NonNullable<typeof late>, 1_000);
    expect(counts.add('key', 2, MINUTE)).toBe(2);
  });

  it('of a flood of keys forget the oldest, and fill no memory', () => {
    const counts = new LimitCounts();
    for (let key = 0; key < 150_000; key++) counts.add(`key ${key}`, 1, MINUTE);
    expect(counts.untold(1_000_000)).toHaveLength(100_000);
    expect(counts.add('key 149999', 1, MINUTE)).toBe(2);
    expect(counts.add('key 0', 1, MINUTE)).toBe(1);
  });
});
