import { AsyncResource } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { OAuthError } from '../../oauth/oauth-error.js';
import { timeOf } from '../../platform/database/sql-dialect.js';
import type { EndedAudience, EndedKind } from '../ended.entity.js';
import type { FeedPosition } from './feed-state.js';
import { FeedStore, type PageRow, ROWS_PER_PAGE } from './feed-store.js';
import { RevocationPublisher } from './revocation-publisher.js';

/** An entry of the feed as consumers get it (protocol §7.6), and whose tokens it can end. Times are in ISO 8601. */
export interface PublishedRevocation {
  kind: EndedKind;
  value: string;
  audience: EndedAudience;
  epoch?: number;
  generation?: number;
  issued_before?: string;
  expires_at: string;
}

export interface RevocationPage {
  revocations: PublishedRevocation[];
  /** The position up to which the page has all revocations in force. */
  end: FeedPosition;
  /** Whether nothing further exists now. False while revocations wait to be published. */
  isComplete: boolean;
  /** The highest position that was known when the read began. The page may lack a higher one. */
  highest: FeedPosition;
}

/** Positions are times, and no entry is in force for longer than a day and two minutes. */
const MAX_AGE_MS = 2 * 86_400_000;

/** Reads the revocation feed. Callers that ask for the same page at the same time share one statement. */
@Injectable()
export class RevocationPages {
  private readonly reads = new Map<string, Promise<RevocationPage>>();
  /** Runs without the context of a request, whose deadline would end the read for the other callers too. */
  private readonly readAlone = AsyncResource.bind((after?: FeedPosition) => this.readFromDatabase(after));

  constructor(
    private readonly store: FeedStore,
    private readonly publisher: RevocationPublisher,
  ) {}

  /** @param after the end of the page before; `undefined` for everything in force */
  read(after: FeedPosition | undefined): Promise<RevocationPage> {
    const key = after ? `${after.history} ${after.position}` : '';
    const running = this.reads.get(key);
    if (running) return running;
    const read = this.readAlone(after).finally(() => this.reads.delete(key));
    this.reads.set(key, read);
    return read;
  }

  /** @throws OAuthError `temporarily_unavailable` if the state was not read for 3 s */
  private async readFromDatabase(after: FeedPosition | undefined): Promise<RevocationPage> {
    const now = this.publisher.databaseTime;
    const { isBehind, isStale } = this.publisher;
    const { highest } = this.publisher.state;
    if (!highest || isStale) throw OAuthError.unavailable(new Error('the state of the revocation feed is not known'));
    const start = after?.history === highest.history ? after.position : 0;
    const rows = await this.store.readPage(Math.max(start, now - MAX_AGE_MS), new Date(now));
    if (rows.length === 0 && (await this.isUnknown(start, highest))) return this.readFromDatabase(undefined);
    const isFull = rows.length === ROWS_PER_PAGE;
    // the rows of the last position may continue on the next page, which therefore begins with this position
    const last = Number(rows.at(-1)?.position ?? start);
    const complete = isFull ? rows.filter(({ position }) => Number(position) !== last) : rows;
    return {
      revocations: complete.map(publishedOf),
      end: { history: highest.history, position: complete.at(-1)?.position ?? start },
      isComplete: !isFull && !isBehind,
      highest,
    };
  }

  /** Then the database was restored from a backup, and a caller that continued here could miss revocations. */
  private async isUnknown(position: number, highest: FeedPosition): Promise<boolean> {
    return position > highest.position && position > (await this.store.readState()).position;
  }
}

function publishedOf(row: PageRow): PublishedRevocation {
  const { kind, value, audience } = row;
  const entry = { kind, value, audience, expires_at: isoOf(row.published_until ?? row.expires_at) };
  const number = Number(row.number);
  if (kind === 'session') return { ...entry, epoch: number };
  if (kind === 'subject') return { ...entry, generation: number };
  return { ...entry, issued_before: isoOf(row.issued_before) };
}

function isoOf(time: Date | string): string {
  return new Date(timeOf(time)).toISOString();
}
