/** The count of one key in the current window. */
interface Count {
  /** The number of the window since 1970. */
  window: number;
  windowMs: number;
  /** The count that the shared store returned last. */
  shared: number;
  /** The part of this process that is being sent to the store. */
  sending: number;
  /** The part of this process that is not sent yet. */
  own: number;
  /** Whether the next exchange includes the key. */
  isPending: boolean;
}

/** Requests that this process has counted but not sent to the shared store. */
export interface UnsentCount {
  key: string;
  window: number;
  windowMs: number;
  own: number;
}

/** Beyond this number the oldest key is removed, because a flood of keys must not fill the memory. */
const MAX_KEYS = 100_000;

/**
 * Counts requests by key, in windows of time that begin at the same moments in every process. The counts are in memory,
 * so that counting takes less than 1 µs. The counts of other processes are added after each exchange with the shared
 * store.
 */
export class LimitCounts {
  private readonly counts = new Map<string, Count>();

  /**
   * Counts a request, and returns the new count of the window. `by` is 0 to only read the count of the other processes.
   */
  add(key: string, window: number, windowMs: number, by = 1): number {
    const current = this.counts.get(key);
    const count = current?.window === window ? current : this.begin(key, window, windowMs);
    count.own += by;
    count.isPending = true;
    return count.shared + count.sending + count.own;
  }

  /** The count of the window. Reading a key does not store it. */
  of(key: string, window: number): number {
    const count = this.counts.get(key);
    return count?.window === window ? count.shared + count.sending + count.own : 0;
  }

  /** Takes at most `limit` counts to send. The caller must call `recordSent` for each. */
  takeUnsent(limit: number): UnsentCount[] {
    const unsent: UnsentCount[] = [];
    for (const [key, count] of this.counts) {
      if (unsent.length === limit) break;
      const { window, windowMs, own } = count;
      if (!count.isPending) continue;
      count.isPending = false;
      count.sending = own;
      count.own = 0;
      unsent.push({ key, window, windowMs, own });
    }
    return unsent;
  }

  /**
   * Records that a count was sent.
   *
   * @param shared the count of all processes, or 0 if sending has failed. The store may have added the count then, so it
   * is not sent again. It still counts in this process.
   */
  recordSent({ key, window }: UnsentCount, shared: number): void {
    const count = this.counts.get(key);
    if (count?.window !== window) return;
    count.shared = Math.max(count.shared + count.sending, shared);
    count.sending = 0;
  }

  private begin(key: string, window: number, windowMs: number): Count {
    const count = { window, windowMs, shared: 0, sending: 0, own: 0, isPending: false };
    this.counts.delete(key); // a Map keeps the order of insertion: the newest window is removed last
    this.counts.set(key, count);
    const [oldest] = this.counts.size > MAX_KEYS ? this.counts.keys() : [];
    if (oldest !== undefined) this.counts.delete(oldest);
    return count;
  }
}
