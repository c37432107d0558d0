import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/clock.js';
import { keysOfIp } from '../../platform/network.js';
import { RecentMap } from '../../platform/recent-map.js';
import { sha256 } from '../../platform/secret.js';

interface Failures {
  count: number;
  /** Milliseconds since 1970. Until then every attempt is rejected. */
  blockedUntil: number;
}

interface Limit {
  counts: FailureCounts;
  key: string;
  /** Failures before the first wait. */
  free: number;
  maxWaitSeconds: number;
}

export interface SignInAttempt {
  /** Seconds until an attempt is admitted. 0: this attempt is admitted, and counts as a failure until it succeeds. */
  waitSeconds: number;
  /** The limits that the attempt counts towards, the narrowest first. */
  limits: Limit[];
}

type FailureCounts = RecentMap<Failures>;

const MAX_KEYS = 50_000;
const FORGET_FAILURES_AFTER_MS = 3_600_000;
const MAX_WAIT_SECONDS = 900;
const MAX_ACCOUNT_WAIT_SECONDS = 30;

/**
 * Slows down the guessing of passwords. Each failure beyond the free ones doubles the wait. Attempts are counted by
 * account and network, by network, and by account.
 *
 * The limit of an account neither rejects nor counts the first attempt from a network without failures in the last
 * hour. Otherwise an attacker could lock an agent out by guessing (decision 0022). A device on which the agent has
 * signed in before has a limit of its own, and no other limit applies to it.
 */
@Injectable()
export class SignInAttempts {
  // Each kind of limit has counts of its own, because a flood of keys of one must not remove the keys of another.
  private readonly ofDevices: FailureCounts = new RecentMap(MAX_KEYS);
  private readonly ofAccountsInNetworks: FailureCounts = new RecentMap(MAX_KEYS);
  private readonly ofNetworks: FailureCounts = new RecentMap(MAX_KEYS);
  private readonly ofAccounts: FailureCounts = new RecentMap(MAX_KEYS);

  constructor(private readonly clock: Clock) {}

  /** Counts an attempt before its password is checked, so that parallel attempts are counted too. */
  begin(email: string, ip: string, knownDevice: string | undefined): SignInAttempt {
    const now = this.clock.now();
    const limits = this.limitsOf(email, ip, knownDevice, now);
    const blockedUntil = Math.max(...limits.map((limit) => failuresOf(limit, now).blockedUntil));
    if (blockedUntil > now) return { waitSeconds: Math.ceil((blockedUntil - now) / 1000), limits: [] };
    for (const limit of limits) count(limit, now);
    return { waitSeconds: 0, limits };
  }

  /** Deletes the account's failures in the narrowest network, and uncounts the attempt elsewhere. */
  succeed({ limits: [narrowest, ...others] }: SignInAttempt): void {
    narrowest?.counts.delete(narrowest.key);
    for (const limit of others) this.uncount(limit);
  }

  /** The service could not check the password, so the attempt does not count as a failure. */
  withdraw({ limits }: SignInAttempt): void {
    for (const limit of limits) this.uncount(limit);
  }

  private limitsOf(email: string, ip: string, knownDevice: string | undefined, now: number): Limit[] {
    const account = sha256(email);
    if (knownDevice !== undefined) return [limitOf(this.ofDevices, `${account} device ${knownDevice}`, 10)];
    const networks = keysOfIp(ip, 'at');
    const isFirst = networks.every(
      ({ key, factor }) => failuresOf({ counts: this.ofNetworks, key }, now).count < factor,
    );
    return [
      ...networks.map(({ key, factor }) => limitOf(this.ofAccountsInNetworks, `${account} ${key}`, 5 * factor)),
      ...networks.map(({ key, factor }) => limitOf(this.ofNetworks, key, 30 * factor)),
      ...(isFirst ? [] : [limitOf(this.ofAccounts, account, 100, MAX_ACCOUNT_WAIT_SECONDS)]),
    ];
  }

  private uncount({ counts, key }: Limit): void {
    const now = this.clock.now();
    const { count, blockedUntil } = failuresOf({ counts, key }, now);
    if (count > 1) counts.set(key, { count: count - 1, blockedUntil: Math.min(blockedUntil, now) });
    else counts.delete(key);
  }
}

function count({ counts, key, free, maxWaitSeconds }: Limit, now: number): void {
  const failures = failuresOf({ counts, key }, now).count + 1;
  const waitSeconds = failures < free ? 0 : Math.min(2 ** (failures - free), maxWaitSeconds);
  counts.set(key, { count: failures, blockedUntil: now + waitSeconds * 1000 });
}

function failuresOf({ counts, key }: Pick<Limit, 'counts' | 'key'>, now: number): Failures {
  const known = counts.get(key);
  return known && now < known.blockedUntil + FORGET_FAILURES_AFTER_MS ? known : { count: 0, blockedUntil: 0 };
}

function limitOf(counts: FailureCounts, key: string, free: number, maxWaitSeconds = MAX_WAIT_SECONDS): Limit {
  return { counts, key, free, maxWaitSeconds };
}
