import { Injectable } from '@nestjs/common';
import { decodeCursor, encodeCursor } from '../../oauth/pages.js';
import { type FeedPosition, isSamePosition } from '../../session/feed/feed-state.js';
import { type PublishedRevocation, type RevocationPage, RevocationPages } from '../../session/feed/revocation-pages.js';
import { RevocationPublisher } from '../../session/feed/revocation-publisher.js';

/** The part of the feed that a caller sees. The operator sees everything. */
export const FEED_VIEWS = ['all', 'customer-api', 'agent-api', 'none'] as const;
export type FeedView = (typeof FEED_VIEWS)[number];

/** Customer tokens also descend from agents' tokens, so that `customer-api` includes what `agent-api` sees. */
export function viewOf(audiences: string[]): FeedView {
  if (audiences.includes('customer-api')) return 'customer-api';
  return audiences.includes('agent-api') ? 'agent-api' : 'none';
}

export function isVisibleIn(view: FeedView, { audience }: PublishedRevocation): boolean {
  if (view === 'none') return false;
  return view !== 'agent-api' || audience !== 'customer-api';
}

const CURSOR_WORDS = new RegExp(`^([1-9]\\d{0,9}) (0|[1-9]\\d{0,14}) (${FEED_VIEWS.join('|')})$`);

interface FeedCursor extends FeedPosition {
  view: FeedView;
}

export function cursorOf({ history, position, view }: FeedCursor): string {
  return encodeCursor(history, position, view);
}

/** `undefined` if `cursorOf` cannot have returned this text. */
export function parseCursor(text: string): FeedCursor | undefined {
  const [, history, position, view] = CURSOR_WORDS.exec(decodeCursor(text)?.join(' ') ?? '') ?? [];
  if (view === undefined) return undefined;
  return { history: Number(history), position: Number(position), view: view as FeedView };
}

/** Below half of the connections of the management port, so that waiting requests leave room for probes. */
export const MAX_WAITING_REQUESTS = 100;

/** What ended a wait: new positions, or something after which the request gets its response. */
export type WaitResult = 'changed' | 'ended';

interface FeedRequest {
  /** The end of the response before; `undefined` for everything in force. */
  after: FeedPosition | undefined;
  waitSeconds: number;
  view: FeedView;
  disconnected: AbortSignal;
}

/** The revocation feed. Waiting requests hold no connection to the database. */
@Injectable()
export class RevocationFeed {
  private isStopped = false;
  /** Ends of the waits, the longest wait first. */
  private readonly ends = new Set<(result: WaitResult) => void>();

  constructor(
    private readonly pages: RevocationPages,
    private readonly publisher: RevocationPublisher,
  ) {
    publisher.state.on('change', () => this.endAll('changed'));
  }

  /** After a wait the page is read again: the caller takes an empty page for the state at the time of the response. */
  async read({ after, waitSeconds, view, disconnected }: FeedRequest): Promise<RevocationPage> {
    const waitUntil = performance.now() + waitSeconds * 1000;
    for (let start = after, isLast = false; ; ) {
      const page = await this.pages.read(start);
      const revocations = page.revocations.filter((each) => isVisibleIn(view, each));
      const remainingMs = waitUntil - performance.now();
      isLast ||= remainingMs <= 0 || this.isStopped || disconnected.aborted;
      if (revocations.length > 0 || isLast) return { ...page, revocations };
      const hasMoved = !isSamePosition(page.end, start) || !isSamePosition(page.highest, this.publisher.state.highest);
      start = page.end;
      if (!hasMoved) isLast = (await this.wait(remainingMs, disconnected)) === 'ended';
      // the database connections close while the process stops; the caller continues at another process
      if (this.isStopped) return { ...page, revocations, isComplete: false };
    }
  }

  /** Ends the waits, because the process stops. A later request does not wait. */
  stop(): void {
    this.isStopped = true;
    this.endAll('ended');
  }

  /** If too many requests wait, the longest wait ends, so that each caller still gets each revocation. */
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
