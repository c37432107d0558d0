import { Injectable } from '@nestjs/common';
import type { FeedPage, FeedPages } from '../../session/feed/feed-pages.js';
import { type FeedPosition, isSamePosition } from '../../session/feed/feed-state.js';
import { RevocationPublisher } from '../../session/feed/revocation-publisher.js';

/** Below half of the connections of the management port, so that waiting requests leave room for probes. */
export const MAX_WAITING_REQUESTS = 100;

/** What ended a wait: new positions, or something after which the request gets its response. */
export type WaitResult = 'changed' | 'ended';

interface FeedRequest<Entry> {
  /** The end of the response before; `undefined` for everything in force. */
  after: FeedPosition | undefined;
  waitSeconds: number;
  isVisible: (entry: Entry) => boolean;
  disconnected: AbortSignal;
}

/** Reads the feeds of the management port for requests that may wait. Waiting requests hold no connection to the database. */
@Injectable()
export class FeedReader {
  private isStopped = false;
  /** Ends of the waits, the longest wait first. */
  private readonly ends = new Set<(result: WaitResult) => void>();

  constructor(private readonly publisher: RevocationPublisher) {
    publisher.state.on('change', () => this.endAll('changed'));
  }

  /** After a wait the page is read again: the caller takes an empty page for the state at the time of the response. */
  async read<Row extends { position: number | null }, Entry>(
    pages: FeedPages<Row, Entry>,
    { after, waitSeconds, isVisible, disconnected }: FeedRequest<Entry>,
  ): Promise<FeedPage<Entry>> {
    const waitUntil = performance.now() + waitSeconds * 1000;
    for (let start = after, isLast = false; ; ) {
      const page = await pages.read(start);
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
    if (this.ends.size >= MAX_WAITING_REQUESTS) longest?.('ended');
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
