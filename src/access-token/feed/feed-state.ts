import { Counter } from 'prom-client';
import type { MetricsRegistry } from '../../platform/metrics.js';
import type { FeedPosition } from './feed-history.js';

/** The metrics of the revocation feed. */
export class FeedMetrics {
  /** When the process last read the state of the feed, by `performance.now()`. */
  readAt = performance.now();
  /** Since when the oldest of the waiting revocations waits; `undefined` if none waits. */
  waitingSince: number | undefined;
  private readonly published: Counter;

  constructor(metrics: MetricsRegistry) {
    metrics.gauge(
      'cas_revocation_feed_lag_seconds',
      'Seconds for which the oldest waiting revocation waits, or seconds since the last read of the state.',
      () => this.lagMs / 1000,
    );
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

type Listener = () => void;

/** One lower read may come from a node of a cluster that does not have the last transactions yet. */
const MIN_LOWER_READ_COUNT = 2;

/** The state of the feed, as this process last read or wrote it. */
export class FeedState {
  /** The highest position; `undefined` before the first read. */
  highest: FeedPosition | undefined;
  /** Whether more revocations waited than one publication can have. */
  hasBacklog = true;
  private lowerReads = 0;
  private readonly listeners = new Set<Listener>();

  /** @param listener called when there are new positions, and by `notify` */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  notify(): void {
    for (const listener of [...this.listeners]) listener();
  }

  /** Whether the last read had a lower position than before, in the same history. */
  get isLower(): boolean {
    return this.lowerReads > 0;
  }

  /** Whether several reads had a lower position: the database was restored from a backup. */
  get isRestored(): boolean {
    return this.lowerReads >= MIN_LOWER_READ_COUNT;
  }

  /** Compares a position that was read with the known one. Call `moveTo` afterwards, unless the position is lower. */
  compare({ history, position }: FeedPosition): void {
    const isLower = this.highest?.history === history && this.highest.position > position;
    this.lowerReads = isLower ? this.lowerReads + 1 : 0;
  }

  /** @returns whether the state has changed */
  moveTo({ history, position }: FeedPosition, hasBacklog: boolean): boolean {
    const isSame = this.highest?.history === history && this.highest.position === position;
    if (isSame && hasBacklog === this.hasBacklog) return false;
    this.highest = { history, position };
    this.hasBacklog = hasBacklog;
    this.notify();
    return true;
  }
}
