import { Injectable } from '@nestjs/common';
import type { FeedPosition } from '../../access-token/feed/feed-history.js';
import { type PublishedRevocation, RevocationPages } from '../../access-token/feed/revocation-pages.js';
import { RevocationPublisher } from '../../access-token/feed/revocation-publisher.js';
import { type FeedView, isVisibleIn } from './feed-view.js';
import { FeedWaiters } from './feed-waiters.js';

interface FeedRequest {
  /** The end of the response before; `undefined` for everything in force. */
  after: FeedPosition | undefined;
  waitSeconds: number;
  view: FeedView;
  disconnected: AbortSignal;
}

interface FeedResult {
  revocations: PublishedRevocation[];
  end: FeedPosition;
  isComplete: boolean;
}

/** The revocations that a caller of the feed may see (protocol §7.6). */
@Injectable()
export class RevocationFeed {
  constructor(
    private readonly pages: RevocationPages,
    private readonly publisher: RevocationPublisher,
    private readonly waiters: FeedWaiters,
  ) {}

  /**
   * Reads the next page. If the page has no revocations for the caller, waits for a page that has. After the wait the
   * page is read again, because the caller takes an empty page for the state at the time of the response.
   */
  async read({ after, waitSeconds, view, disconnected }: FeedRequest): Promise<FeedResult> {
    const waitUntil = performance.now() + waitSeconds * 1000;
    for (let start = after, isLast = false; ; ) {
      const page = await this.pages.read(start);
      const revocations = page.revocations.filter((each) => isVisibleIn(view, each));
      const remainingMs = waitUntil - performance.now();
      isLast ||= remainingMs <= 0 || this.publisher.stopped || disconnected.aborted;
      if (revocations.length > 0 || isLast) return { ...page, revocations };
      const hasMoved = !isSame(page.end, start) || !isSame(page.highest, this.publisher.state.highest);
      start = page.end;
      if (!hasMoved) isLast = (await this.waiters.wait(remainingMs, disconnected)) === 'ended';
      // the database connections close while the process stops; the caller continues at another process
      if (this.publisher.stopped) return { ...page, revocations, isComplete: false };
    }
  }
}

function isSame(one: FeedPosition, other: FeedPosition | undefined): boolean {
  return one.history === other?.history && one.position === other.position;
}
