import { type DynamicModule, Module } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import {
  DEFAULT_LIMITS,
  type LimitDeclarations,
  parseLimit,
  type RateLimitRule,
  type RateLimitRules,
} from '../platform/configuration/rate-limit-rule.js';
import { MetricsRegistry } from '../platform/metrics.js';
import type { LimitKey } from '../platform/network.js';
import { RecentMap } from '../platform/recent-map.js';
import { SNAKE_CASE_NAME } from '../platform/text-forms.js';

/** A request that a limit has counted. */
export interface CountedRequest {
  /** Removes the request from the count of its window. A second call has no effect. */
  giveBack(): void;
}

/** The limit of refused requests, whose rules the grants declare. */
export const ATTEMPTS = 'attempts';
const RESERVED = [...Object.keys(DEFAULT_LIMITS), ATTEMPTS, 'off'];

/** @throws Error that names the limit, if an extension declares it incorrectly or RATE_LIMIT names an unknown limit */
export function limitRules(configured: RateLimitRules, declared: LimitDeclarations): Record<string, RateLimitRule> {
  const rules: Record<string, RateLimitRule> = { ...DEFAULT_LIMITS };
  for (const [name, text] of Object.entries(declared)) rules[name] = declaredRule(name, text);
  for (const [name, rule] of Object.entries(configured)) {
    if (!Object.hasOwn(rules, name)) throw new Error(`RATE_LIMIT: ${name}: no limit has this name`);
    rules[name] = rule;
  }
  return rules;
}

function declaredRule(name: string, text: string): RateLimitRule {
  if (RESERVED.includes(name)) throw new Error(`limits.${name}: is a limit of the service; rename yours`);
  if (!SNAKE_CASE_NAME.test(name)) throw new Error(`limits.${name}: must be a name in snake_case; rename it`);
  const rule = parseLimit(text);
  if (!rule) throw new Error(`limits.${name}: must be COUNT/SECONDS, for example 30/300`);
  return rule;
}

/** The requests of a key in one window. */
interface WindowCount {
  /** The number of the window since 1970. */
  readonly window: number;
  requests: number;
}

class Counted implements CountedRequest {
  private isGivenBack = false;

  constructor(private readonly counts: readonly WindowCount[]) {}

  /** The count of a window that has ended is read by no request, so it may change. */
  giveBack(): void {
    if (!this.isGivenBack) this.countFurther(-1);
    this.isGivenBack = true;
  }

  /** Counts more of the request, even beyond the limit: only then is it known how much it was. @internal */
  countFurther(by: number): void {
    for (const count of this.counts) count.requests += by;
  }
}

/** The most keys of a limit, because a flood of keys must not fill the memory. */
const MAX_KEYS = 100_000;

/**
 * Enforces RATE_LIMIT in fixed windows of time. Each process counts alone, in memory
 * (docs/decisions/0014-rate-limits.md).
 */
export class RateLimits {
  private readonly rules: Record<string, RateLimitRule>;
  /** Each limit has counts of its own, because a flood of keys of one limit must not remove the keys of another. */
  private readonly counts = new Map<string, RecentMap<WindowCount>>();
  private readonly limited: Counter<'limit'>;

  constructor(
    private readonly configuration: Configuration,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
    private readonly declared: LimitDeclarations = {},
    /** Whether the limits of refused requests, which grants declare, apply. RATE_LIMIT does not change this. */
    readonly limitAttempts = true,
  ) {
    const { RATE_LIMIT } = configuration;
    this.rules = limitRules(RATE_LIMIT === 'off' ? DEFAULT_LIMITS : RATE_LIMIT, declared);
    this.limited = metrics.counted('cas_rate_limited_total', 'Requests rejected by a rate limit.', 'limit');
    for (const limit of [...Object.keys(this.rules), ATTEMPTS]) this.limited.inc({ limit }, 0); // 0 from the start
  }

  isDeclared(limit: string): boolean {
    return Object.hasOwn(this.declared, limit);
  }

  /**
   * If one key is at its limit, the request counts for none: a /64 could use up the limit of its /48 otherwise. A
   * rejected request stores no key, so it cannot displace others.
   *
   * @param keys a short text that identifies what the limit counts for, such as a client; or the keys of a network
   * @throws OAuthError 429 `temporarily_unavailable` with `Retry-After`
   */
  take(limit: string, keys: string | LimitKey[]): Counted {
    if (this.configuration.RATE_LIMIT === 'off') return new Counted([]);
    const rule = this.rules[limit];
    if (!rule) throw new Error(`${limit}: no limit has this name`);
    const all = typeof keys === 'string' ? [{ key: keys, factor: 1 }] : keys;
    if (all.some((each) => this.requestsOf(limit, rule, each) >= each.factor * rule.count))
      throw this.rejected(limit, rule);
    return new Counted(this.add(limit, rule, all));
  }

  requestsOf(limit: string, rule: RateLimitRule, { key }: LimitKey): number {
    const count = this.counts.get(limit)?.get(key);
    return count?.window === this.windowOf(rule) ? count.requests : 0;
  }

  add(limit: string, rule: RateLimitRule, keys: LimitKey[]): WindowCount[] {
    const ofLimit = this.counts.get(limit) ?? new RecentMap<WindowCount>(MAX_KEYS);
    this.counts.set(limit, ofLimit);
    const window = this.windowOf(rule);
    return keys.map(({ key }) => {
      const current = ofLimit.get(key);
      const count = current?.window === window ? current : { window, requests: 0 };
      count.requests++;
      ofLimit.set(key, count);
      return count;
    });
  }

  /** Counts a rejected request in the metric. Returns the error, with the seconds until the next window. */
  rejected(limit: string, { seconds }: RateLimitRule): OAuthError {
    this.limited.inc({ limit });
    const windowMs = seconds * 1000;
    return OAuthError.rateLimited(Math.ceil((windowMs - (this.clock.now() % windowMs)) / 1000), limit);
  }

  private windowOf({ seconds }: RateLimitRule): number {
    return Math.floor(this.clock.now() / (seconds * 1000));
  }
}

/** Takes a limit by a call that throws. Returns 0, or the seconds after which the caller may try again. */
export function secondsToWait(take: () => void): number {
  try {
    take();
    return 0;
  } catch (error) {
    if (error instanceof OAuthError) return Number(error.headers['Retry-After']);
    throw error;
  }
}

export interface RateLimitOptions {
  limits?: LimitDeclarations;
  /** By default, the limits of refused requests, which grants declare, apply. */
  limitAttempts?: boolean;
}

@Module({})
export class RateLimitModule {
  static forRoot({ limits, limitAttempts }: RateLimitOptions): DynamicModule {
    const provider = {
      provide: RateLimits,
      inject: [Configuration, Clock, MetricsRegistry],
      useFactory: (...common: [Configuration, Clock, MetricsRegistry]) =>
        new RateLimits(...common, limits, limitAttempts),
    };
    return { module: RateLimitModule, global: true, providers: [provider], exports: [RateLimits] };
  }
}
