import { AsyncResource } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { Database } from '../platform/database/database.js';
import { DatabaseClock } from '../platform/database/database-clock.js';
import { FeedPublisher } from './feed-publisher.js';
import type { FeedPosition } from './feed-state.js';
import { FeedStore, ROWS_PER_PAGE } from './feed-store.js';

export interface FeedPage<Entry> {
  entries: Entry[];
  /** The position up to which the page has all entries in force. */
  end: FeedPosition;
  /** Whether nothing further exists now. False while entries wait to be published. */
  isComplete: boolean;
  /** The highest position that was known when the read began. The page may lack a higher one. */
  highest: FeedPosition;
}

/**
 * Reads the pages of one of the feeds, which have positions of one history. Callers that ask for the same page at the
 * same time share one statement.
 */
@Injectable()
export abstract class FeedPages<Row extends { position: number | null }, Entry> {
  private readonly reads = new Map<string, Promise<FeedPage<Entry>>>();
  /** Runs without the context of a request, whose deadline would end the read for the other callers too. */
  private readonly readAlone = AsyncResource.bind((after?: FeedPosition) => this.readFromDatabase(after));

  constructor(
    protected readonly database: Database,
    private readonly store: FeedStore,
    private readonly publisher: FeedPublisher,
    private readonly databaseClock: DatabaseClock,
  ) {}

  /** @param now the time of the database */
  protected abstract readRows(after: number, now: number): Promise<Row[]>;

  protected abstract entryOf(row: Row): Entry;

  /** @param after the end of the page before; `undefined` for everything in force */
  read(after: FeedPosition | undefined): Promise<FeedPage<Entry>> {
    const key = after ? `${after.history} ${after.position}` : '';
    const running = this.reads.get(key);
    if (running) return running;
    const read = this.readAlone(after).finally(() => this.reads.delete(key));
    this.reads.set(key, read);
    return read;
  }

  /** @throws OAuthError `temporarily_unavailable` if the state was not read for 3 s */
  private async readFromDatabase(after: FeedPosition | undefined): Promise<FeedPage<Entry>> {
    // a clock that is ahead would leave out entries that are in force
    const now = this.databaseClock.now();
    const { isBehind, isStale } = this.publisher;
    const { highest } = this.publisher.state;
    if (!highest || isStale) throw OAuthError.unavailable(new Error('the state of the revocation feed is not known'));
    const start = after?.history === highest.history ? after.position : 0;
    const rows = await this.readRows(start, now);
    if (rows.length === 0 && (await this.isUnknown(start, highest))) return this.readFromDatabase(undefined);
    const isFull = rows.length === ROWS_PER_PAGE;
    // the rows of the last position may continue on the next page, which therefore begins with this position
    const last = Number(rows.at(-1)?.position ?? start);
    const complete = isFull ? rows.filter(({ position }) => Number(position) !== last) : rows;
    return {
      entries: complete.map((row) => this.entryOf(row)),
      end: { history: highest.history, position: complete.at(-1)?.position ?? start },
      isComplete: !isFull && !isBehind,
      highest,
    };
  }

  /** Then the database was restored from a backup, and a caller that continued here could miss entries. */
  private async isUnknown(position: number, highest: FeedPosition): Promise<boolean> {
    return position > highest.position && position > (await this.store.readState()).position;
  }
}
