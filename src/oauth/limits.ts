import { type DynamicModule, Module } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Counter } from 'prom-client';
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
import { keysOfIp, type LimitKey } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { sha256 } from '../platform/secret.js';
import { SNAKE_CASE_NAME, withoutTrailingSpaces } from '../platform/validation/text-rules.js';
import { OAuthError } from './oauth-error.js';

/** A request that a limit has counted. */
export interface CountedRequest {
  /** Removes the request from the count of its window. A second call has no effect. */
  giveBack(): void;
}

/** The limit of refused requests, whose rules the grants declare. */
export const ATTEMPTS = 'attempts';
/** The limit of failed sign-ins of agents, which the database counts. */
export const SIGN_IN = 'sign_in';
const RESERVED = [...Object.keys(DEFAULT_LIMITS), ATTEMPTS, SIGN_IN, 'off'];

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

  /** No request reads the count of a window that has ended, so it may change. */
  giveBack(): void {
    if (!this.isGivenBack) this.countFurther(-1);
    this.isGivenBack = true;
  }

  /** Counts more of the request, even beyond the limit: only then is it known how much it was. */
  countFurther(by: number): void {
    for (const count of this.counts) count.requests += by;
  }
}

/** What one limit counts a request for. */
export interface LimitedKeys {
  /** The name of the limit's counts. */
  limit: string;
  rule: RateLimitRule;
  keys: readonly LimitKey[];
}

/** The most keys of a limit, because a flood of keys must not fill the memory. */
const MAX_KEYS = 100_000;

/** `maxSize`, because `max` would reserve 2.7 MB for each limit at its first request. */
const countsOfLimit = () => new LRUCache<string, WindowCount>({ maxSize: MAX_KEYS, sizeCalculation: () => 1 });

/**
 * Limits requests in fixed windows of time. Each process counts alone, in memory (docs/decisions/0014-rate-limits.md).
 *
 * An extension takes from the limits that it declares in `limits`. `Declared` is the type of that declaration, so that
 * only its names compile: `Limits<typeof DEVICE_LIMITS>`.
 */
export class Limits<Declared extends LimitDeclarations = Record<never, never>> {
  private readonly rules: Record<string, RateLimitRule>;
  /** Each limit has counts of its own, because a flood of keys of one limit must not remove the keys of another. */
  private readonly counts = new Map<string, LRUCache<string, WindowCount>>();
  private readonly limited: Counter<'limit'>;

  /** @internal */
  constructor(
    private readonly configuration: Configuration,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
    private readonly declared: LimitDeclarations = {},
    /**
     * Whether the limits of refused requests, which grants declare, apply. RATE_LIMIT does not change this. @internal
     */
    readonly limitAttempts = true,
  ) {
    const { RATE_LIMIT } = configuration;
    this.rules = limitRules(RATE_LIMIT === 'off' ? DEFAULT_LIMITS : RATE_LIMIT, declared);
    this.limited = metrics.counter('cas_rate_limited_total', 'Requests rejected by a rate limit.', 'limit');
    for (const limit of [...Object.keys(this.rules), ATTEMPTS, SIGN_IN]) this.limited.inc({ limit }, 0); // 0 from the start
  }

  /**
   * Counts an event for a key, such as the id of a customer. The key may come from the caller and have any length.
   *
   * @returns the counted event. `giveBack()` removes it from the count, for example if the work failed
   * @throws OAuthError 429 `temporarily_unavailable` with `Retry-After` if the limit is reached
   */
  take(limit: keyof Declared & string, key: string): CountedRequest {
    return this.takeDeclared(limit, [{ key: keyOf(key), factor: 1 }]);
  }

  /**
   * Counts an event for the caller's network, or for a key in this network. An IPv6 address counts in its /64, in its
   * /56 with 8 times the limit, and in its /48 with 32 times the limit.
   *
   * @returns the counted event, as `take` does
   * @throws OAuthError 429 `temporarily_unavailable` with `Retry-After` if the limit is reached
   */
  takeForNetwork(limit: keyof Declared & string, key = ''): CountedRequest {
    return this.takeDeclared(limit, keysOfIp(requestContext.required().ip, key && keyOf(key)));
  }

  /**
   * Counts a request for short keys that the service chooses, which are not hashed.
   *
   * @throws OAuthError 429 @internal
   */
  takeKeys(limit: string, keys: string | LimitKey[]): Counted {
    if (this.configuration.RATE_LIMIT === 'off') return new Counted([]);
    const rule = this.rules[limit];
    if (!rule) throw new Error(`${limit}: no limit has this name`);
    const all = typeof keys === 'string' ? [{ key: keys, factor: 1 }] : keys;
    return this.takeEach([{ limit, rule, keys: all }], limit);
  }

  /**
   * Takes from several limits. If one key is at its limit, the request counts for none: a /64 could use up the limit of
   * its /48 otherwise. A rejected request stores no key, so it cannot displace others.
   *
   * @throws OAuthError 429 that names the limit @internal
   */
  takeEach(limits: readonly LimitedKeys[], name: string): Counted {
    for (const { limit, rule, keys } of limits)
      for (const { key, factor } of keys)
        if (this.countIn(limit, rule, key).requests >= factor * rule.count) throw this.rejected(name, rule);
    const counts = limits.flatMap(({ limit, rule, keys }) => keys.map(({ key }) => this.add(limit, rule, key)));
    return new Counted(counts);
  }

  /** Counts a rejected request in the metric. Returns the error, with the seconds until the next window. @internal */
  rejected(limit: string, { seconds }: RateLimitRule): OAuthError {
    this.limited.inc({ limit });
    const windowMs = seconds * 1000;
    return OAuthError.rateLimited(Math.ceil((windowMs - (this.clock.now() % windowMs)) / 1000), limit);
  }

  private takeDeclared(limit: string, keys: LimitKey[]): CountedRequest {
    if (!Object.hasOwn(this.declared, limit))
      throw new Error(`${limit}: no limit has this name; declare it in limits of the Extension`);
    return this.takeKeys(limit, keys);
  }

  private add(limit: string, rule: RateLimitRule, key: string): WindowCount {
    const ofLimit = this.counts.get(limit) ?? countsOfLimit();
    this.counts.set(limit, ofLimit);
    const count = this.countIn(limit, rule, key);
    count.requests++;
    ofLimit.set(key, count);
    return count;
  }

  private countIn(limit: string, { seconds }: RateLimitRule, key: string): WindowCount {
    const window = Math.floor(this.clock.now() / (seconds * 1000));
    const count = this.counts.get(limit)?.get(key);
    return count?.window === window ? count : { window, requests: 0 };
  }
}

/** Keys that differ only in the spaces at their end are one key. */
function keyOf(key: string): string {
  return sha256(withoutTrailingSpaces(key));
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
      provide: Limits,
      inject: [Configuration, Clock, MetricsRegistry],
      useFactory: (...common: [Configuration, Clock, MetricsRegistry]) => new Limits(...common, limits, limitAttempts),
    };
    return { module: RateLimitModule, global: true, providers: [provider], exports: [Limits] };
  }
}
