import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Limits } from '../../src/oauth/limits.js';
import { Clock } from '../../src/platform/clock.js';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { DEFAULT_LIMITS, parseRateLimit } from '../../src/platform/configuration/rate-limit-rule.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';
import { keysOfIp, networkOf } from '../../src/platform/network.js';

const MINUTE_MS = 60_000;

describe('RATE_LIMIT', () => {
  it.each([
    ['identities=5/60', { ...DEFAULT_LIMITS, identities: { count: 5, seconds: 60 } }],
    [
      'tokens=1/1, forgets=9/9',
      { ...DEFAULT_LIMITS, tokens: { count: 1, seconds: 1 }, forgets: { count: 9, seconds: 9 } },
    ],
    ['transfers=7/60', { ...DEFAULT_LIMITS, transfers: { count: 7, seconds: 60 } }],
    ['off', 'off'],
  ])('%s leaves the default of every limit that it does not name', (text, rules) => {
    expect(parseRateLimit(text)).toEqual(rules);
  });

  it.each(['', 'on', 'identities', 'identities=0/60', 'identities=5', 'Others=5/60', 'tokens=5/60,', '__proto__=1/1'])(
    'is invalid as %j',
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
    ['203.0.113.7', '::FFFF:203.0.113.7'],
    ['203.0.113.7', '::ffff:cb00:7107'],
    ['203.0.113.7', '0:0:0:0:0:ffff:203.0.113.7'],
    ['2001:DB8::ABCD', '2001:0db8:0000:0000:0000:0000:0000:0001'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ...['unknown', '1:2:3:4:5:6:7:8::9', ':::', '1.2.3', '999.1.1.1', '%', '_hidden', '[::1'].map((text) => [text, '']),
    ['', 'x'.repeat(5_000)],
    ['unknown', '203.0.113.7.8'],
  ])('of %s is the same as that of %s', (one, other) => {
    expect(networkOf(one)).toBe(networkOf(other));
  });

  it('differs between two IPv4 addresses and between two IPv6 /64', () => {
    for (const [one, other] of [
      ['203.0.113.7', '203.0.113.8'],
      ['::ffff:203.0.113.7', '::ffff:203.0.113.8'],
      ['2001:db8:1:2::1', '2001:db8:1:3::1'],
      ['2001:db8:1::1', '2001:db8:0:1::1'],
      ['127.0.0.1', '::1'],
      ['unknown', '203.0.113.7'],
    ] as const)
      expect(networkOf(one)).not.toBe(networkOf(other));
  });

  it('is counted as an IPv4 address, or as an IPv6 /64, /56 and /48 with 1, 8 and 32 times the limit', () => {
    expect(keysOfIp('203.0.113.7')).toEqual([{ key: networkOf('203.0.113.7'), factor: 1 }]);
    expect(keysOfIp('::ffff:203.0.113.7')).toEqual(keysOfIp('203.0.113.7'));
    expect(keysOfIp('not an address')).toEqual([{ key: 'unknown', factor: 1 }]);
    expect(keysOfIp('2001:db8:1:a2ff::1')).toEqual([
      { key: networkOf('2001:db8:1:a2ff::1'), factor: 1 },
      { key: '2001:db8:1:a200/56', factor: 8 },
      { key: '2001:db8:1/48', factor: 32 },
    ]);
  });

  it('shares with each IPv6 address exactly the prefixes that both have in common', () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const address = fc.tuple(fc.constant(0x2001), fc.constantFrom(0xdb8, 0), fc.constantFrom(0, 1), group, group);
    const text = (groups: number[]) => [...groups, 0, 0, 1].map((each) => each.toString(16)).join(':');
    const bits = (groups: number[]) => groups.map((each) => each.toString(2).padStart(16, '0')).join('');
    fc.assert(
      fc.property(address, address, (one, other) => {
        const shared = keysOfIp(text(one)).map(({ key }, index) => key === keysOfIp(text(other))[index]?.key);
        expect(shared).toEqual(
          [64, 56, 48].map((length) => bits(one).slice(0, length) === bits(other).slice(0, length)),
        );
      }),
    );
  });
});

describe('the counts of a rate limit', () => {
  class TestClock extends Clock {
    time = 0;
    override now = () => this.time;
  }
  function limitsOf(rules: object) {
    const configuration = Object.assign(new Configuration(), { RATE_LIMIT: { ...DEFAULT_LIMITS, ...rules } });
    const clock = new TestClock();
    return { clock, limits: new Limits(configuration, clock, new MetricsRegistry()) };
  }

  it('admit a request exactly if the requests of the window that were not given back are below the limit', () => {
    const step = fc.record({ does: fc.constantFrom('take', 'take', 'give back', 'wait'), which: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { clock, limits } = limitsOf({ tokens: { count: 3, seconds: 60 } });
        const taken: { window: number; isGivenBack: boolean; giveBack(): void }[] = [];
        for (const { does, which } of steps) {
          const window = Math.floor(clock.time / MINUTE_MS);
          if (does === 'wait') clock.time += which * 10_000;
          if (does === 'take') {
            const hasRoom = taken.filter((each) => each.window === window && !each.isGivenBack).length < 3;
            if (!hasRoom) expect(() => limits.takeKeys('tokens', 'key')).toThrow('limit: tokens');
            else {
              const counted = limits.takeKeys('tokens', 'key');
              taken.push({ window, isGivenBack: false, giveBack: () => counted.giveBack() });
            }
          }
          const given = does === 'give back' ? taken[which] : undefined;
          given?.giveBack();
          if (given) given.isGivenBack = true;
        }
      }),
    );
  });

  it('drop the oldest keys beyond 100,000 keys, so that a flood does not fill the memory', () => {
    const { limits } = limitsOf({ tokens: { count: 1, seconds: 60 } });
    for (let key = 0; key < 150_000; key++) limits.takeKeys('tokens', `key ${key}`);
    expect(() => limits.takeKeys('tokens', 'key 149999')).toThrow('limit: tokens');
    expect(() => limits.takeKeys('tokens', 'key 0')).not.toThrow();
  });
});
