import { type DynamicModule, Module, type OnApplicationShutdown } from '@nestjs/common';
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
import { SNAKE_CASE_NAME } from '../platform/text-forms.js';
import { LimitCounts } from './limit-counts.js';
import { SharedCounts } from './shared-counts.js';

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

/** Enforces RATE_LIMIT. With REDIS_URL all processes share their counts (docs/decisions/0014-rate-limits.md). */
export class RateLimits implements OnApplicationShutdown {
  private readonly rules: Record<string, RateLimitRule>;
  /** Each limit has counts of its own, because a flood of keys of one limit must not remove the keys of another. */
  private readonly counts = new Map<string, LimitCounts>();
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
    this.shared = REDIS_URL === undefined ? undefined : new SharedCounts(REDIS_URL, () => [...this.counts.values()]);
    this.limited = metrics.counted('cas_rate_limited_total', 'Requests rejected by a rate limit.', 'limit');
    for (const limit of [...Object.keys(this.rules), ATTEMPTS]) this.limited.inc({ limit }, 0); // 0 from the start
    metrics.gauge(
      'cas_rate_limit_store_up',
      '0 while REDIS_URL is unreachable; each process then applies its own counts.',
      () => Number(this.shared?.isUp ?? true),
    );
  }

  onApplicationShutdown(): void {
    this.shared?.stop();
  }

  isDeclared(limit: string): boolean {
    return Object.hasOwn(this.declared, limit);
  }

  /**
   * If one key is at its limit, the request counts for none: a /64 could use up the limit of its /48 otherwise.
   * @param keys a short text that identifies what the limit counts for, such as a client; or the keys of a network
   * @throws OAuthError 429 `temporarily_unavailable` with `Retry-After`
   */
  take(limit: string, keys: string | LimitKey[]): void {
    if (this.configuration.RATE_LIMIT === 'off') return;
    const rule = this.rules[limit];
    if (!rule) throw new Error(`${limit}: no limit has this name`);
    const all = allOf(keys);
    if (all.some((each) => this.countOf(limit, rule, each) >= each.factor * rule.count))
      throw this.rejected(limit, rule);
    this.add(limit, rule, all);
  }

  /** Counts more of what a request has taken already, even beyond the limit: only then is it known how much it was. */
  countFurther(limit: string, keys: string | LimitKey[], by: number): void {
    const rule = this.rules[limit];
    if (this.configuration.RATE_LIMIT !== 'off' && rule && by > 0) this.add(limit, rule, allOf(keys), by);
  }

  /** Returned requests have counts of their own: processes can merge counts that only rise in any order. */
  takeReturnable(limit: string, keys: LimitKey[]): CountedRequest {
    const rule = this.rules[limit] as RateLimitRule;
    const window = this.windowOf(rule);
    this.add(returnedOf(limit), rule, keys, 0); // asks the shared store what other processes gave back
    this.take(limit, keys);
    let isCounted = true;
    return {
      giveBack: () => {
        if (isCounted && this.windowOf(rule) === window) this.add(returnedOf(limit), rule, keys);
        isCounted = false;
      },
    };
  }

  countOf(limit: string, rule: RateLimitRule, { key }: LimitKey): number {
    const countIn = (name: string) => this.counts.get(name)?.of(`${name}:${key}`, this.windowOf(rule)) ?? 0;
    return countIn(limit) - countIn(returnedOf(limit));
  }

  /** `by` is 0 to only read the counts of the other processes. */
  add(limit: string, rule: RateLimitRule, keys: LimitKey[], by = 1): void {
    const counts = this.counts.get(limit) ?? new LimitCounts(this.shared !== undefined);
    this.counts.set(limit, counts);
    for (const { key } of keys) counts.add(`${limit}:${key}`, this.windowOf(rule), rule.seconds * 1000, by);
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

const allOf = (keys: string | LimitKey[]) => (typeof keys === 'string' ? [{ key: keys, factor: 1 }] : keys);

const returnedOf = (limit: string) => `${limit}:returned`;

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
