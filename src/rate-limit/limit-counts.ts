import { RecentMap } from '../platform/recent-map.js';

export interface LimitCount {
  readonly key: string;
  /** The number of the window since 1970. */
  readonly window: number;
  readonly windowMs: number;
  /** The count that the shared store returned last. */
  shared: number;
  /** The part of this process that is being sent to the store. */
  sending: number;
  /** The part of this process that is not sent yet. */
  own: number;
  isPending: boolean;
}

/** The most keys that are counted, because a flood of keys must not fill the memory. */
const MAX_KEYS = 100_000;

/** Counts requests by key, in windows of time that begin at the same moments in every process. */
export class LimitCounts {
  private readonly counts = new RecentMap<LimitCount>(MAX_KEYS);
  private readonly pending: LimitCount[] = [];

  constructor(private readonly isShared: boolean) {}

  /** Counts a request. `by` is 0 to only read the count of the other processes. */
  add(key: string, window: number, windowMs: number, by = 1): void {
    const current = this.counts.get(key);
    const count = current?.window === window ? current : this.begin(key, window, windowMs);
    count.own += by;
    if (this.isShared && !count.isPending && this.pending.length < MAX_KEYS) {
      count.isPending = true;
      this.pending.push(count);
    }
  }

  /** Reading a key does not store it. */
  of(key: string, window: number): number {
    const count = this.counts.get(key);
    return count?.window === window ? count.shared + count.sending + count.own : 0;
  }

  /** Takes at most `limit` counts to send, each with its part in `sending`. The caller calls `recordSent` for each. */
  takeUnsent(limit: number): LimitCount[] {
    const unsent = this.pending.splice(0, limit);
    for (const count of unsent) {
      count.isPending = false;
      count.sending = count.own;
      count.own = 0;
    }
    return unsent;
  }

  private begin(key: string, window: number, windowMs: number): LimitCount {
    const count = { key, window, windowMs, shared: 0, sending: 0, own: 0, isPending: false };
    this.counts.set(key, count);
    return count;
  }
}

/** `shared` is 0 if sending has failed. The store may have added the count then, so it is not sent again. */
export function recordSent(count: LimitCount, shared: number): void {
  count.shared = Math.max(count.shared + count.sending, shared);
  count.sending = 0;
}
