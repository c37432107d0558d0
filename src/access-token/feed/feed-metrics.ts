import { Counter, Gauge } from 'prom-client';
import type { MetricsRegistry } from '../../platform/metrics/metrics-registry.js';

/** The metrics of the revocation feed. */
export class FeedMetrics {
  /** When the process last read the state of the feed, by `performance.now()`. */
  readAt = performance.now();
  /** Since when the oldest of the waiting revocations waits; `undefined` if none waits. */
  waitingSince: number | undefined;
  private readonly published: Counter;

  constructor(metrics: MetricsRegistry) {
    const lagSeconds = () => this.lagMs / 1000;
    new Gauge({
      name: 'cas_revocation_feed_lag_seconds',
      help: 'Seconds for which the oldest waiting revocation waits, or seconds since the last read of the state.',
      registers: [metrics],
      collect() {
        this.set(lagSeconds());
      },
    });
    this.published = new Counter({
      name: 'cas_revocations_published_total',
      help: 'Revocations that this process published in the feed, again after a change.',
      registers: [metrics],
    });
  }

  /** How long the oldest of the waiting revocations waits, or else the age of the last read. */
  get lagMs(): number {
    return performance.now() - (this.waitingSince ?? this.readAt);
  }

  count(rows: number): void {
    this.published.inc(rows);
  }
}
