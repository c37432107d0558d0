import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { DatabaseClock } from '../platform/database/database-clock.js';
import { DatabaseStart } from '../platform/database/database-start.js';
import { MetricsRegistry } from '../platform/metrics.js';
import { FeedEntries } from './feed-entries.js';
import { type FeedPosition, FeedState } from './feed-state.js';
import { FeedStore, MAX_ROWS_PER_POSITION, type StoredFeedState, type WaitingRows } from './feed-store.js';
import { ENTRY_SECONDS } from './recorded-endings.js';

/** The pause between two reads of the state. Each process has one read at a time, however many callers wait. */
const POLL_PAUSE_MS = 400;
/** How long rows may wait before another process publishes them. The publisher has then probably died. */
const TAKEOVER_MS = 500;
/** How long a row may wait before pages are incomplete, and the state may be unknown before there are none. */
const MAX_LAG_MS = 3_000;

const NOTHING: WaitingRows = { revocations: [], events: [] };

/** The work of a poll, as the log says that it fails. */
const WORK = {
  publication: 'the revocation feed cannot be published',
  count: 'the entries of the revocation feed cannot be counted',
};

/**
 * Gives committed revocations and events their positions in one history (protocol §7.6 and §7.8). One transaction
 * raises the highest position and publishes rows, so that a reader that sees a position also sees all lower positions.
 * The last process to publish keeps publishing, and another one takes over when the position stops rising. A conflict
 * between two publishers aborts one of the transactions, even on clusters.
 */
@Injectable()
export class FeedPublisher implements OnApplicationBootstrap, OnModuleDestroy {
  readonly state = new FeedState();
  private readonly logger = new Logger('RevocationFeed');
  private readonly id = randomUUID();
  /** When the process last read the state of the feed, by `performance.now()`. */
  private readAt = performance.now();
  private readonly published: Counter;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  /** The work that failed last, so that each failure is logged once. */
  private readonly failing = new Set<keyof typeof WORK>();
  /** Since when each row waits, by `performance.now()`. A locked row is left out, so later ones may be first. */
  private waiting = new Map<string, number>();
  /** Since when rows wait while the position does not move, by `performance.now()`. */
  private waitingSince: number | undefined;

  constructor(
    private readonly store: FeedStore,
    private readonly entries: FeedEntries,
    private readonly databaseClock: DatabaseClock,
    private readonly start: DatabaseStart,
    metrics: MetricsRegistry,
  ) {
    metrics.gauge(
      'cas_revocation_feed_lag_seconds',
      'Seconds for which the oldest waiting revocation or event waits, or seconds since the last read of the state.',
      () => this.lagMs / 1000,
    );
    this.published = metrics.counter(
      'cas_revocations_published_total',
      'Revocations that this process published in the feed, again after a change.',
    );
  }

  /** Reads the state before the first request, whose cursor must be of the history of the database. */
  async onApplicationBootstrap(): Promise<void> {
    if (this.start.isOfCommand) return;
    await this.run('publication', () => this.start.run(() => this.readFirstState()));
    this.schedule();
  }

  /** The requests under way, which may revoke tokens, have ended before. */
  onModuleDestroy(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Whether committed revocations or events are missing in the feeds, because they wait for their positions. */
  get isBehind(): boolean {
    return this.state.hasBacklog || this.state.isLower || this.lagMs > MAX_LAG_MS;
  }

  /** Whether it is unknown for too long what waits, so that no page can be given out. */
  get isStale(): boolean {
    return performance.now() - this.readAt > MAX_LAG_MS;
  }

  private get lagMs(): number {
    return performance.now() - (this.waiting.size === 0 ? this.readAt : Math.min(...this.waiting.values()));
  }

  private schedule(): void {
    if (!this.isStopped) this.timer = setTimeout(() => void this.poll(), POLL_PAUSE_MS).unref();
  }

  private async poll(): Promise<void> {
    await this.run('publication', () => this.publishIfDue());
    this.schedule();
  }

  private async run(name: keyof typeof WORK, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      if (this.failing.delete(name)) this.logger.log(`${WORK[name].replace('cannot', 'can')} again`);
    } catch (error) {
      // while the process stops, its connections are closed
      if (!this.failing.has(name) && !this.isStopped) this.logger.warn(`${WORK[name]}: ${(error as Error).message}`);
      this.failing.add(name);
    }
  }

  private async publishIfDue(): Promise<void> {
    const stored = await this.readState();
    if (!stored) return;
    const isWaiting = stored.is_waiting !== 0;
    const { revocations, events } = isWaiting ? await this.store.findWaiting() : NOTHING;
    // a revocation that was published and changed since has another position, and waits since its change
    const changes = revocations.map(({ kind, value, position }) => `${kind} ${value} ${position}`);
    const now = performance.now();
    const keys = [...changes, ...events.map(({ id }) => id)];
    this.waiting = new Map(keys.map((key) => [key, this.waiting.get(key) ?? now]));
    await this.entries.setWaiting(revocations.length, revocations.length >= MAX_ROWS_PER_POSITION);
    if (isWaiting || this.state.hasBacklog) this.waitingSince ??= performance.now();
    else this.waitingSince = undefined;
    if (this.waitingSince !== undefined && this.isPublisher(stored, this.waitingSince))
      while (!this.isStopped && (await this.publish()));
    await this.run('count', () => this.entries.countOn(stored.publisher === this.id));
  }

  private isPublisher({ publisher }: StoredFeedState, waitingSince: number): boolean {
    return publisher === this.id || publisher === '' || performance.now() - waitingSince >= TAKEOVER_MS;
  }

  /** The first read begins the history of a new database. Each read also compares the clocks. */
  private async readFirstState(): Promise<void> {
    if (!(await this.readState())) await this.readState();
    this.databaseClock.assertClose();
  }

  /** @returns the state of the feed; `undefined` if this process cannot continue from it */
  private async readState(): Promise<StoredFeedState | undefined> {
    const stored = await this.store.readState();
    const { history, position, has_backlog } = stored;
    this.databaseClock.compare(stored.read_at);
    if (history === 0) return void (await this.store.renewHistory(0));
    this.state.compare({ history, position });
    if (!this.state.isLower) {
      this.entries.readFrom(stored);
      this.readAt = performance.now();
      this.moveTo({ history, position }, Boolean(has_backlog));
      return stored;
    }
    if (this.state.isRestored) {
      this.logger.warn('the position of the revocation feed went back: each consumer reads the full list again');
      await this.store.renewHistory(history);
    }
    return undefined;
  }

  /** @returns whether more rows may wait */
  private async publish(): Promise<boolean> {
    const { highest, hasBacklog } = this.state;
    const rows = await this.store.findUnlocked();
    const [revocations, events] = [rows.revocations.length, rows.events.length];
    if (!highest || (revocations + events === 0 && !hasBacklog)) return false;
    const hasMore = Math.max(revocations, events) >= MAX_ROWS_PER_POSITION;
    const position = await this.publishRows(rows, highest.position, hasMore);
    if (position === undefined) return false;
    this.published.inc(revocations);
    this.entries.addPublished(revocations);
    this.readAt = performance.now();
    this.moveTo({ ...highest, position }, hasMore);
    return hasMore;
  }

  /** @returns the position; `undefined` if another process has published since this process read the expected one */
  private async publishRows(
    rows: WaitingRows,
    expectedPosition: number,
    hasBacklog: boolean,
  ): Promise<number | undefined> {
    // a clock that is behind would publish entries for too short a time
    const now = this.databaseClock.now();
    const position = Math.max(expectedPosition + 1, now);
    const until = new Date(now + ENTRY_SECONDS * 1000);
    const publication = { rows, position, expectedPosition, until, publisher: this.id, hasBacklog };
    return (await this.store.publish(publication)) ? position : undefined;
  }

  private moveTo(highest: FeedPosition, hasBacklog: boolean): void {
    if (this.state.moveTo(highest, hasBacklog)) this.waitingSince = undefined;
  }
}
