import { beforeEach, describe, expect, it } from 'vitest';
import { TestClock } from '../../packages/conformance-kit/src/test-clock.js';
import { SignInAttempts } from '../../src/agent-auth/session/sign-in-attempts.js';

const AGENT = 'agent@acme.example';
const HOUR_SECONDS = 3_600;

let clock: TestClock;
let attempts: SignInAttempts;
beforeEach(() => {
  clock = TestClock.stoppedAt(Date.UTC(2097, 0, 2));
  attempts = new SignInAttempts(clock);
});

const pass = (seconds: number) => clock.advance({ seconds });

/** Makes failed attempts. Returns the seconds that the last attempt had to wait. */
function fail(
  times: number,
  { email = AGENT, address = '198.51.100.1', device = undefined as string | undefined } = {},
) {
  let wait = 0;
  for (let n = 0; n < times; n++) wait = attempts.begin(email, address, device).waitSeconds;
  return wait;
}

describe('sign-in attempts at one account from one address', () => {
  it('are forgotten one hour after the last wait', () => {
    fail(5);
    pass(HOUR_SECONDS);
    fail(1);
    expect(fail(1)).toBe(2);
    pass(HOUR_SECONDS + 2);
    expect(fail(5)).toBe(0);
  });

  it('are reset by the right password', () => {
    fail(4);
    attempts.succeed(attempts.begin(AGENT, '198.51.100.1', undefined));
    expect(fail(5)).toBe(0);
    expect(fail(1)).toBe(1);
  });
});

describe('sign-in attempts from one address', () => {
  const spray = (from: number, to: number) => {
    let wait = 0;
    for (let n = from; n < to; n++) wait = fail(1, { email: `agent${n}@acme.example` });
    return wait;
  };

  it('are delayed after 30 failures at any accounts', () => {
    expect(spray(0, 30)).toBe(0);
    expect(spray(30, 31)).toBe(1);
    expect(fail(1, { email: 'new@acme.example', address: '198.51.100.2' })).toBe(0);
  });

  it('are not delayed by any number of successful sign-ins', () => {
    for (let n = 0; n < 200; n++) {
      const attempt = attempts.begin(`agent${n}@acme.example`, '198.51.100.1', undefined);
      expect(attempt.waitSeconds).toBe(0);
      attempts.succeed(attempt);
    }
  });

  it('are delayed even if the attacker signs in to an own account in between', () => {
    let checkedAttempts = 0;
    for (let n = 0; n < 100; n++) {
      const own = attempts.begin('mine@acme.example', '198.51.100.1', undefined);
      if (own.waitSeconds === 0) attempts.succeed(own);
      if (attempts.begin(`agent${n}@acme.example`, '198.51.100.1', undefined).waitSeconds === 0) checkedAttempts++;
    }
    expect(checkedAttempts).toBeLessThanOrEqual(30);
  });
});

describe('sign-in attempts at one account from many networks', () => {
  /** Five failures from each network. The first failure of a network does not count for the account. */
  const failFrom = (networks: number) => {
    for (let n = 0; n < networks; n++) fail(5, { address: `10.${n >> 8}.${n & 255}.1` });
  };
  const secondFrom = (address: string) => {
    fail(1, { address });
    return fail(1, { address });
  };

  it('are limited to one in 30 s after 100 failures, if their network has failed before', () => {
    failFrom(25); // 100 failures that count and 25 first failures
    expect(secondFrom('203.0.113.1')).toBe(1);
    for (let n = 0; n < 20; n++) {
      pass(30);
      expect(secondFrom(`203.0.113.${n + 2}`)).toBe(0);
    }
    expect(secondFrom('203.0.113.100')).toBe(30);
  });

  it('are exempt once per network and hour, for all accounts together', () => {
    failFrom(60);
    expect(fail(1, { address: '203.0.113.1', email: 'other@acme.example' })).toBe(0);
    expect(fail(1, { address: '203.0.113.1' })).toBeGreaterThan(0);
    pass(HOUR_SECONDS - 40);
    failFrom(60);
    expect(fail(1, { address: '203.0.113.1' })).toBeGreaterThan(0);
    pass(41);
    expect(fail(1, { address: '203.0.113.1' })).toBe(0);
  });

  it('are not exempt while the exempt attempt of the network is being checked', () => {
    failFrom(60);
    const first = attempts.begin(AGENT, '203.0.113.1', undefined);
    expect(first.waitSeconds).toBe(0);
    expect(fail(1, { address: '203.0.113.1' })).toBeGreaterThan(0);
    attempts.succeed(first);
    expect(fail(1, { address: '203.0.113.1' })).toBe(0);
  });

  it('are exempt 8 times from the /64s of an IPv6 /56, and 32 times from those of a /48', () => {
    failFrom(60);
    const admitted = (subnets: number[]) =>
      subnets.filter((subnet) => fail(1, { address: `2001:db8:1:${subnet.toString(16)}::1` }) === 0).length;
    const subnetsOf = (upperByte: number) => Array.from({ length: 200 }, (_, n) => (upperByte << 8) + n);
    expect(admitted(subnetsOf(0))).toBe(8);
    expect(admitted([1, 2, 3, 4, 5].flatMap(subnetsOf))).toBe(24);
    expect(fail(1, { address: '2001:db8:2::1' })).toBe(0);
  });
});

it('sign-in attempts from a known device are delayed only by failures on that device', () => {
  expect(fail(10, { device: 'known' })).toBe(0);
  expect(fail(1, { device: 'known' })).toBe(1);
  expect(fail(1, { device: 'another' })).toBe(0);
  expect(fail(1, { device: 'known', email: 'other@acme.example' })).toBe(0);
});

const from = (subnet: number, email: string) => fail(1, { email, address: `2001:db8:1:${subnet.toString(16)}::1` });
const admittedFrom = (upperByte: number, emailOf: (n: number) => string) =>
  Array.from({ length: 256 }, (_, n) => from((upperByte << 8) + n, emailOf(n))).filter((wait) => wait === 0).length;

it('sign-in attempts from the /64s of one IPv6 site at any accounts are free 240 times from a /56, and 960 times from a /48', () => {
  const emailOf = (n: number) => `agent${n}@acme.example`;
  expect([0, 1, 2, 3, 4, 5].map((upperByte) => admittedFrom(upperByte, emailOf))).toEqual([240, 240, 240, 240, 0, 0]);
});
