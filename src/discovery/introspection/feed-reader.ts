import { Injectable } from '@nestjs/common';
import { EventPages, type PublishedEvent } from '../../feed/event-pages.js';
import type { FeedPage } from '../../feed/feed-pages.js';
import { FeedPublisher } from '../../feed/feed-publisher.js';
import { type FeedPosition, isSamePosition } from '../../feed/feed-state.js';
import { type PublishedRevocation, RevocationPages } from '../../feed/revocation-pages.js';

/**
 * With those of the events below half of the connections of the management port, so that they leave room for probes.
 */
export const MAX_WAITING_REQUESTS = 100;
/** Fewer, because each store of conversations has one consumer. Consumers of events end no wait of a verifier. */
export const MAX_WAITING_EVENT_REQUESTS = 20;

/** What ended a wait: new positions, or something after which the request gets its response. */
export type WaitResult = 'changed' | 'ended';

interface Pages<Entry> {
  read(after: FeedPosition | undefined): Promise<FeedPage<Entry>>;
}

interface FeedRequest<Entry> {
  /** The end of the response before; `undefined` for everything in force. */
  after: FeedPosition | undefined;
  waitSeconds: number;
  isVisible: (entry: Entry) => boolean;
  disconnected: AbortSignal;
}

/**
 * Reads a feed of the management port for requests that may wait. Waiting requests hold no connection to the database.
 */
export abstract class FeedReader<Entry> {
  protected abstract readonly maxWaiting: number;
  private isStopped = false;
  /** Ends of the waits, the longest wait first. */
  private readonly ends = new Set<(result: WaitResult) => void>();

  constructor(
    private readonly pages: Pages<Entry>,
    private readonly publisher: FeedPublisher,
  ) {
    publisher.state.on('change', () => this.endAll('changed'));
  }

  /** After a wait the page is read again: the caller takes an empty page for the state at the time of the response. */
  async read({ after, waitSeconds, isVisible, disconnected }: FeedRequest<Entry>): Promise<FeedPage<Entry>> {
    const waitUntil = performance.now() + waitSeconds * 1000;
    for (let start = after, isLast = false; ; ) {
      const page = await this.pages.read(start);
      const entries = page.entries.filter(isVisible);
      const remainingMs = waitUntil - performance.now();
      isLast ||= remainingMs <= 0 || this.isStopped || disconnected.aborted;
      if (entries.length > 0 || isLast) return { ...page, entries };
      const hasMoved = !isSamePosition(page.end, start) || !isSamePosition(page.highest, this.publisher.state.highest);
      start = page.end;
      if (!hasMoved) isLast = (await this.wait(remainingMs, disconnected)) === 'ended';
      // the database connections close while the process stops; the caller continues at another process
      if (this.isStopped) return { ...page, entries, isComplete: false };
    }
  }

  /** Ends the waits, because the process stops. A later request does not wait. */
  stop(): void {
    this.isStopped = true;
    this.endAll('ended');
  }

  /** If too many requests wait, the longest wait ends, so that each caller still gets each entry. */
  wait(milliseconds: number, disconnected: AbortSignal): Promise<WaitResult> {
    if (disconnected.aborted) return Promise.resolve('ended');
    const [longest] = this.ends;
    if (this.ends.size >= this.maxWaiting) longest?.('ended');
    return new Promise((resolve) => {
      const end = (result: WaitResult) => {
        this.ends.delete(end);
        clearTimeout(timer);
        disconnected.removeEventListener('abort', leave);
        resolve(result);
      };
      const leave = () => end('ended');
      const timer = setTimeout(leave, milliseconds);
      disconnected.addEventListener('abort', leave, { once: true });
      this.ends.add(end);
    });
  }

  private endAll(result: WaitResult): void {
    for (const end of [...this.ends]) end(result);
  }
}

@Injectable()
export class RevocationReader extends FeedReader<PublishedRevocation> {
  protected readonly maxWaiting = MAX_WAITING_REQUESTS;

  constructor(pages: RevocationPages, publisher: FeedPublisher) {
    super(pages, publisher);
  }
}

@Injectable()
export class EventReader extends FeedReader<PublishedEvent> {
  protected readonly maxWaiting = MAX_WAITING_EVENT_REQUESTS;

  constructor(pages: EventPages, publisher: FeedPublisher) {
    super(pages, publisher);
  }
}
