import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Counter, Gauge } from 'prom-client';
import { Clock } from '../clock.js';
import { Configuration } from '../configuration/configuration.js';
import type { LimitName } from '../configuration/rate-limit-rule.js';
import { MetricsRegistry } from '../metrics/metrics-registry.js';
import { LimitCounts } from './limit-counts.js';
import { networksOf } from './network.js';
import { SharedCounts } from './shared-counts.js';

interface LimitKey {
  key: string;
  /** How many times the limit this key may use. */
  factor: number;
}

/** Enforces RATE_LIMIT. With REDIS_URL all processes share their counts (docs/decisions/0014-rate-limits.md). */
@Injectable()
export class RateLimits implements OnApplicationShutdown {
  /** Each limit has counts of its own, because a flood of keys of one limit must not remove the keys of another. */
  private readonly counts: Record<LimitName, LimitCounts> = {
    identities: new LimitCounts(),
    tokens: new LimitCounts(),
    transfers: new LimitCounts(),
    sign_in: new LimitCounts(),
  };
  private readonly shared: SharedCounts | undefined;
  private readonly limited: Counter<'limit'>;

  constructor(
    private readonly configuration: Configuration,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
  ) {
    const { REDIS_URL } = configuration;
    this.shared = REDIS_URL === undefined ? undefined : new SharedCounts(REDIS_URL, Object.values(this.counts));
    const isUp = () => this.shared?.isUp ?? true;
    const limited = new Counter({
      name: 'cas_rate_limited_total',
      help: 'Requests rejected by a rate limit.',
      labelNames: ['limit'],
      registers: [metrics],
    });
    for (const limit of Object.keys(this.counts)) limited.inc({ limit }, 0); // shows 0 from the start
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

  /**
   * Counts a request, unless the limit is reached.
   *
   * @param key identifies what the limit counts for, such as a client. It is short, and callers cannot invent new
   *   values
   * @returns 0 if the request is within the limit, else the seconds until the next request may be
   */
  take(limit: LimitName, key: string): number {
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
  takeForIp(limit: LimitName, ip: string, account = ''): number {
    const networks = networksOf(ip);
    const keys = networks.map(({ network, factor }) => ({ key: `${account && `${account} `}${network}`, factor }));
    return this.takeAll(limit, keys);
  }

  private takeAll(limit: LimitName, keys: LimitKey[]): number {
    const { RATE_LIMIT } = this.configuration;
    if (RATE_LIMIT === 'off') return 0;
    const { count, seconds } = RATE_LIMIT[limit];
    const windowMs = seconds * 1000;
    const now = this.clock.now();
    const window = Math.floor(now / windowMs);
    const counts = this.counts[limit];
    const nameOf = (key: string) => `${limit}:${key}`;
    if (keys.every(({ key, factor }) => counts.of(nameOf(key), window) < factor * count)) {
      for (const { key } of keys) counts.add(nameOf(key), window, windowMs);
      return 0;
    }
    this.limited.inc({ limit });
    return Math.ceil(((window + 1) * windowMs - now) / 1000);
  }
}
