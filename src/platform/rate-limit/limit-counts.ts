/** How often something happened in the present window of time. */
interface Count {
  window: number;
  /** Milliseconds. */
  length: number;
  /** What is known of all processes. */
  shared: number;
  /** What this process has on its way to the others, and what it has not sent yet. */
  sending: number;
  own: number;
}

/** What this process has counted and not told the others. */
export interface Untold {
  key: string;
  window: number;
  length: number;
  own: number;
}

/** Keys that are remembered; beyond, the one counted first is forgotten, since a flood must not fill the memory. */
const MAX_KEYS = 100_000;

/**
 * Counts by key in windows of time that begin at the same moments on every process. In memory, so that counting costs
 * less than a microsecond; what other processes have counted is added when it becomes known.
 */
export class LimitCounts {
  private readonly counts = new Map<string, Count>();

  /** Counts one more, and returns how many that makes in the window. */
  add(key: string, window: number, length: number): number {
    const known = this.counts.get(key);
    const count = known?.window === window ? known : this.begin(key, window, length);
    count.own++;
    return count.shared + count.sending + count.own;
  }

  /** How many are counted in the window. A key that is only asked about leaves nothing in memory. */
  of(key: string, window: number): number {
    const count = this.counts.get(key);
    return count?.window === window ? count.shared + count.sending + count.own : 0;
  }

  /** What is to be told the others, at most so many; each is on its way until `told` or `kept`. */
  untold(limit: number): Untold[] {
    const untold: Untold[] = [];
    for (const [key, count] of this.counts) {
      if (untold.length === limit) break;
      const { window, length, own } = count;
      if (own === 0) continue;
      count.sending = own;
      count.own = 0;
      untold.push({ key, window, length, own });
    }
    return untold;
  }

  /** The others have been told, and this is what all have counted. */
  told({ key, window }: Untold, shared: number): void {
    const count = this.counts.get(key);
    if (count?.window !== window) return;
    count.shared = Math.max(count.shared + count.sending, shared);
    count.sending = 0;
  }

  /** Whether the others know, nobody knows: it is not told twice, and goes on counting here. */
  kept(untold: Untold): void {
    this.told(untold, 0);
  }

  private begin(key: string, window: number, length: number): Count {
    const count = { window, length, shared: 0, sending: 0, own: 0 };
    this.counts.delete(key); // what begins last is forgotten last
    this.counts.set(key, count);
    const [oldest] = this.counts.size > MAX_KEYS ? this.counts.keys() : [];
    if (oldest !== undefined) this.counts.delete(oldest);
    return count;
  }
}
