import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/clock.js';
import { networkOf } from '../../platform/rate-limit/network.js';
import { sha256 } from '../../platform/secret.js';

interface Failures {
  count: number;
  /** Milliseconds since 1970 until which no further attempt is looked at. */
  blockedUntil: number;
}

interface Limit {
  key: string;
  /** Failures that cost nothing. */
  free: number;
  /** The longest wait, in seconds. */
  longest: number;
}

const REMEMBERED = 100_000;
const FORGOTTEN_AFTER = 3_600_000;

/**
 * Slows the guessing of passwords down: each failure beyond the free ones doubles the wait.
 *
 * Counted by account and address together, by address, and by account. The wait by account alone stays short, and a
 * device on which the agent has signed in before is not held by it: so a stranger who guesses at somebody's account
 * from everywhere slows the guessing, and never locks the agent out.
 */
@Injectable()
export class SignInAttempts {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly clock: Clock) {}

  /**
   * Counts an attempt before its password is looked at, so that parallel ones count too.
   *
   * @returns seconds to wait, in which case the attempt is not to be made; 0 when it may be
   */
  begin(email: string, address: string, knownDevice: string | undefined): number {
    const now = this.clock.now();
    const limits = limitsOf(email, address, knownDevice);
    const blocked = Math.max(...limits.map(({ key }) => this.of(key, now).blockedUntil));
    if (blocked > now) return Math.ceil((blocked - now) / 1000);
    for (const limit of limits) this.count(limit, now);
    return 0;
  }

  /** The password was right: this account's count at this address begins anew, and elsewhere the attempt is no failure. */
  succeed(email: string, address: string, knownDevice: string | undefined): void {
    const [narrowest, ...others] = limitsOf(email, address, knownDevice);
    if (narrowest) this.failures.delete(narrowest.key);
    for (const { key } of others) this.takeBack(key);
  }

  private takeBack(key: string): void {
    const now = this.clock.now();
    const { count, blockedUntil } = this.of(key, now);
    if (count > 0) this.failures.set(key, { count: count - 1, blockedUntil: Math.min(blockedUntil, now) });
  }

  private count({ key, free, longest }: Limit, now: number): void {
    const count = this.of(key, now).count + 1;
    const wait = count < free ? 0 : Math.min(2 ** (count - free), longest) * 1000;
    this.failures.delete(key); // what was counted last is forgotten last
    this.failures.set(key, { count, blockedUntil: now + wait });
    const [oldest] = this.failures.size > REMEMBERED ? this.failures.keys() : [];
    if (oldest !== undefined) this.failures.delete(oldest);
  }

  private of(key: string, now: number): Failures {
    const known = this.failures.get(key);
    return known && now < known.blockedUntil + FORGOTTEN_AFTER ? known : { count: 0, blockedUntil: 0 };
  }
}

function limitsOf(email: string, address: string, knownDevice: string | undefined): Limit[] {
  const account = sha256(email.toLowerCase());
  if (knownDevice !== undefined) return [{ key: `${account} device ${knownDevice}`, free: 10, longest: 900 }];
  const network = networkOf(address);
  return [
    { key: `${account} at ${network}`, free: 5, longest: 900 },
    { key: `at ${network}`, free: 30, longest: 900 },
    { key: account, free: 100, longest: 30 },
  ];
}
