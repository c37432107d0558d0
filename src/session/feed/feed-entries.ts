import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { timeOf } from '../../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement, writeStatement } from '../../platform/database/statement.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import type { Ended } from '../ended.entity.js';
import type { RevocationFeedState } from './revocation-feed-state.entity.js';

type StoredEntries = EntityRow<RevocationFeedState, 'history' | 'entries' | 'entries_count'>;

/** From this number on, customers and clients on the public port cannot cause further entries. Verifiers hold more. */
export const MAX_ENTRIES = 1_000_000;
/** The largest number of waiting revocations that is counted. Beyond it, the number of entries is unknown. */
export const MAX_WAITING_ENTRIES = 100_000;

const ROWS_PER_STEP = 10_000;
const PUBLISHER_INTERVAL_MS = 60_000;
/** Longer, so that usually the publisher alone counts. */
const OTHERS_INTERVAL_MS = 120_000;
/** By how much the clock of the counting process may be ahead of other clocks. No entry may be missing then. */
const CLOCK_MARGIN_MS = 120_000;
const END = new Date('9999-12-31T00:00:00Z');

const FIND_LAST_OF_STEP = selectStatement<[after: Date], NotNull<EntityRow<Ended, 'published_until'>>>(
  `SELECT published_until FROM ended WHERE published_until > ?
    ORDER BY published_until LIMIT 1 OFFSET ${ROWS_PER_STEP - 1}`,
);

const COUNT_STEP = selectStatement<[after: Date, last: Date], { entries: number }>(
  'SELECT COUNT(*) AS entries FROM ended WHERE published_until > ? AND published_until <= ?',
);

const COUNT_WAITING = selectStatement<[], { waiting: number }>(
  `SELECT COUNT(*) AS waiting FROM
    (SELECT 1 FROM ended WHERE published_until IS NULL LIMIT ${MAX_WAITING_ENTRIES}) AS some_rows`,
);

/** Subtracts the expired entries. Matches no row if another process has counted since. */
const CORRECT = writeStatement<[surplus: number, count: number]>(
  'UPDATE revocation_feed SET entries = entries - ?, entries_count = entries_count + 1 WHERE id = 1 AND entries_count = ?',
);

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
    private readonly database: Database,
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

  readFrom({ history, entries, entries_count: number }: StoredEntries): void {
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

  /** If the number reaches the `limit` of the statement that read the rows, counts them. */
  async setWaiting(rows: number, limit: number): Promise<void> {
    const [row] = rows < limit ? [] : await this.database.select(COUNT_WAITING, []);
    this.waiting = row ? Number(row.waiting) : rows;
  }

  /** A step counts about 10,000 rows, so that it delays no publication. */
  async countOn(isPublisher: boolean): Promise<void> {
    const now = this.clock.now();
    // the absolute value, because the clock may be set back
    const isDue = Math.abs(now - this.lastCount.knownAt) >= (isPublisher ? PUBLISHER_INTERVAL_MS : OTHERS_INTERVAL_MS);
    if (isDue) this.counting ??= { storedBefore: this.published, counted: 0, after: new Date(now - CLOCK_MARGIN_MS) };
    if (this.counting) await this.countStep(this.counting);
  }

  private async countStep(counting: Counting): Promise<void> {
    const [found] = await this.database.select(FIND_LAST_OF_STEP, [counting.after]);
    const last = found ? new Date(timeOf(found.published_until)) : END;
    const [row] = await this.database.select(COUNT_STEP, [counting.after, last]);
    counting.counted += Number(row?.entries);
    counting.after = last;
    if (found) return;
    this.counting = undefined;
    this.lastCount.knownAt = this.clock.now();
    const surplus = counting.storedBefore - counting.counted;
    if (surplus !== 0) await this.database.execute(CORRECT, [surplus, this.lastCount.number]);
  }
}
