import type { OnApplicationShutdown } from '@nestjs/common';
import { Counter, Gauge } from 'prom-client';
import type { Clock } from '../clock.js';
import type { Configuration } from '../configuration/configuration.js';
import { DEFAULT_LIMITS, type LimitDeclarations, type RateLimitRule } from '../configuration/rate-limit-rule.js';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { LimitCounts } from './limit-counts.js';
import { keysOfIp, keysOfSite, type LimitKey } from './limit-key.js';
import { ATTEMPTS, limitRules } from './limit-rules.js';
import { type CountedRequest, type LimitWindow, ReturnedCounts } from './returned-counts.js';
import { SharedCounts } from './shared-counts.js';

/** Enforces RATE_LIMIT. With REDIS_URL all processes share their counts (docs/decisions/0014-rate-limits.md). */
export class RateLimits implements OnApplicationShutdown {
  private readonly rules: Record<string, RateLimitRule>;
  /** Each limit has counts of its own, because a flood of keys of one limit must not remove the keys of another. */
  private readonly counts = new Map<string, LimitCounts>();
  /** The requests that were given back, for each limit. */
  private readonly returned: Record<string, ReturnedCounts>;
  private readonly shared: SharedCounts | undefined;
  private readonly limited: Counter<'limit'>;

  constructor(
    private readonly configuration: Configuration,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
    private readonly declared: LimitDeclarations = {},
    /** Whether the limits of refused requests, which grants declare, apply. RATE_LIMIT does not change this. */
    readonly limitAttempts = true,
  ) {
    const { REDIS_URL, RATE_LIMIT } = configuration;
    this.rules = limitRules(RATE_LIMIT === 'off' ? DEFAULT_LIMITS : RATE_LIMIT, declared);
    this.returned = Object.fromEntries(Object.keys(this.rules).map((name) => [name, new ReturnedCounts(name)]));
    const allCounts = () => [...this.counts.values(), ...Object.values(this.returned).map(({ counts }) => counts)];
    this.shared = REDIS_URL === undefined ? undefined : new SharedCounts(REDIS_URL, allCounts);
    const isUp = () => this.shared?.isUp ?? true;
    const limited = new Counter({
      name: 'cas_rate_limited_total',
      help: 'Requests rejected by a rate limit.',
      labelNames: ['limit'],
      registers: [metrics],
    });
    for (const limit of [...Object.keys(this.rules), ATTEMPTS]) limited.inc({ limit }, 0); // shows 0 from the start
    this.limited = limited;
    new Gauge({
      name: 'cas_rate_limit_store_up',
      help: '0 while REDIS_URL is unreachable; each process then applies its own counts.',
      registers: [metrics],
      collect() {
        this.set(Number(isUp()));
      },
    });
  }

  onApplicationShutdown(): void {
    this.shared?.stop();
  }

  /** Whether an extension declares the limit. */
  isDeclared(limit: string): boolean {
    return Object.hasOwn(this.declared, limit);
  }

  /**
   * Counts a request, unless the limit is reached.
   *
   * @param key identifies what the limit counts for, such as a client. It is short
   * @returns 0 if the request is within the limit, else the seconds until the next request may be
   */
  take(limit: string, key: string): number {
    return this.takeAll(limit, [{ key, factor: 1 }]);
  }

  /**
   * Counts a request for the networks of an IP address, or for an account in these networks.
   *
   * An IPv6 address counts in its /64, its /56 and its /48. If one of these limits is reached, the request counts in
   * none of them. Otherwise one /64 could use up the limit of its /48 with requests that are rejected.
   *
   * @returns 0 if the request is within the limits, else the seconds until the next request may be
   */
  takeForIp(limit: string, ip: string, account = ''): number {
    return this.takeAll(limit, keysOfIp(ip, account));
  }

  /**
   * Counts a request for the end site of an IP address (RFC 6177): the IPv4 address, or the /56 and, with 4 times the
   * limit, the /48 of an IPv6 address.
   *
   * @returns 0 if the request is within the limits, else the seconds until the next request may be
   */
  takeForSite(limit: string, ip: string): number {
    return this.takeAll(limit, keysOfSite(ip));
  }

  /**
   * Counts a request for each key, unless the limit of one key is reached. The caller may give it back.
   *
   * @returns the counted request, or the seconds until the next request may be
   */
  takeReturnable(limit: string, keys: LimitKey[]): CountedRequest | number {
    const rule = this.rules[limit] as RateLimitRule;
    const counted = this.returned[limit]?.request(keys, this.windowOf(rule), () => this.windowOf(rule).number);
    return this.takeAll(limit, keys) || (counted as CountedRequest);
  }

  /** The count of a key in the current window. */
  countOf(limit: string, rule: RateLimitRule, { key }: LimitKey): number {
    const { number } = this.windowOf(rule);
    const returned = this.returned[limit]?.of(key, number) ?? 0;
    return this.countsOf(limit).of(`${limit}:${key}`, number) - returned;
  }

  /** Counts a request for each of several keys. */
  add(limit: string, rule: RateLimitRule, keys: LimitKey[]): void {
    const { number, windowMs } = this.windowOf(rule);
    for (const { key } of keys) this.countsOf(limit).add(`${limit}:${key}`, number, windowMs);
  }

  /** Counts a rejected request in the metric. Returns the seconds until the next window, for `Retry-After`. */
  reject(limit: string, { seconds }: RateLimitRule): number {
    this.limited.inc({ limit });
    const windowMs = seconds * 1000;
    return Math.ceil((windowMs - (this.clock.now() % windowMs)) / 1000);
  }

  private takeAll(limit: string, keys: LimitKey[]): number {
    if (this.configuration.RATE_LIMIT === 'off') return 0;
    const rule = this.rules[limit];
    if (!rule) throw new Error(`${limit}: no limit has this name`);
    if (keys.some((each) => this.countOf(limit, rule, each) >= each.factor * rule.count))
      return this.reject(limit, rule);
    this.add(limit, rule, keys);
    return 0;
  }

  private windowOf({ seconds }: RateLimitRule): LimitWindow {
    const windowMs = seconds * 1000;
    return { number: Math.floor(this.clock.now() / windowMs), windowMs };
  }

  private countsOf(limit: string): LimitCounts {
    const existing = this.counts.get(limit);
    if (existing) return existing;
    const created = new LimitCounts();
    this.counts.set(limit, created);
    return created;
  }
}
