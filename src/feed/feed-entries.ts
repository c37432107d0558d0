import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { MetricsRegistry } from '../platform/metrics.js';
import { FeedStore, MAX_WAITING_ENTRIES, type StoredFeedState } from './feed-store.js';

/** From this number on, customers and clients on the public port cannot cause further entries. Verifiers hold more. */
export const MAX_ENTRIES = 1_000_000;
const PUBLISHER_INTERVAL_MS = 60_000;
/** Longer, so that usually the publisher alone counts. */
const OTHERS_INTERVAL_MS = 120_000;
/** By how much the clock of the counting process may be ahead of other clocks. No entry may be missing then. */
const CLOCK_MARGIN_MS = 120_000;

interface Counting {
  /** The stored number when the count began. Publications raise the stored number meanwhile. */
  storedBefore: number;
  counted: number;
  after: Date;
}

/**
 * The number of feed entries in force. Each publication raises it, and a count every minute subtracts only entries that
 * expired at least 120 s ago, so that the number is never too low.
 */
@Injectable()
export class FeedEntries {
  private published = 0;
  private waiting = 0;
  private history: number | null = null;
  /** Each process counts once at its start, and once after a restore of the database. */
  private lastCount = { number: 0, knownAt: -Infinity };
  private counting: Counting | undefined;

  constructor(
    private readonly store: FeedStore,
    private readonly clock: Clock,
    metrics: MetricsRegistry,
  ) {
    metrics.gauge(
      'cas_revocation_feed_entries',
      'Entries of the revocation feed that are in force, with those that wait for their publication.',
      () => this.count,
    );
  }

  get count(): number {
    return this.published + this.waiting;
  }

  /** Callers without a secret then cause no further entries (protocol §2.14). */
  get isFull(): boolean {
    return this.count >= MAX_ENTRIES || this.waiting >= MAX_WAITING_ENTRIES;
  }

  readFrom({ history, entries, entries_count: number }: StoredFeedState): void {
    this.published = entries;
    const isSameHistory = history === this.history;
    if (isSameHistory && number === this.lastCount.number) return;
    const isFirst = !isSameHistory || this.lastCount.knownAt === -Infinity;
    this.lastCount = { number, knownAt: isFirst ? -Infinity : this.clock.now() };
    this.history = history;
    this.counting = undefined; // another process was faster, or the entries are those of a backup
  }

  addPublished(rows: number): void {
    this.published += rows;
  }

  /** @param isLimited whether the statement that read the rows reached its limit, so that there may be more */
  async setWaiting(rows: number, isLimited: boolean): Promise<void> {
    this.waiting = isLimited ? await this.store.countWaiting() : rows;
  }

  /** Counts one step further, if a count is due or under way. */
  async countOn(isPublisher: boolean): Promise<void> {
    const now = this.clock.now();
    // the absolute value, because the clock may be set back
    const isDue = Math.abs(now - this.lastCount.knownAt) >= (isPublisher ? PUBLISHER_INTERVAL_MS : OTHERS_INTERVAL_MS);
    if (isDue) this.counting ??= { storedBefore: this.published, counted: 0, after: new Date(now - CLOCK_MARGIN_MS) };
    if (this.counting) await this.countStep(this.counting);
  }

  private async countStep(counting: Counting): Promise<void> {
    const { entries, last } = await this.store.countStep(counting.after);
    counting.counted += entries;
    if (last) {
      counting.after = last;
      return;
    }
    this.counting = undefined;
    this.lastCount.knownAt = this.clock.now();
    const surplus = counting.storedBefore - counting.counted;
    if (surplus !== 0) await this.store.correctCount(surplus, this.lastCount.number);
  }
}
