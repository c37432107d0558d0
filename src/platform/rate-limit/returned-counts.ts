import { LimitCounts } from './limit-counts.js';
import type { LimitKey } from './limit-key.js';

/** A request that a limit has counted. */
export interface CountedRequest {
  /** Removes the request from the count of its window. A second call has no effect. */
  giveBack(): void;
}

/** A window of time of a limit. */
export interface LimitWindow {
  /** The number of the window since 1970. */
  number: number;
  windowMs: number;
}

/**
 * The requests that an extension gave back to a limit. They have counts of their own, because counts that only rise can
 * be added up by several processes in any order.
 */
export class ReturnedCounts {
  readonly counts = new LimitCounts();

  constructor(private readonly limit: string) {}

  /** The number of returned requests of a key in a window. */
  of(key: string, window: number): number {
    return this.counts.of(this.keyOf(key), window);
  }

  /** The request of some keys in a window. Also asks the shared store what other processes gave back. */
  request(keys: LimitKey[], { number, windowMs }: LimitWindow, currentWindow: () => number): CountedRequest {
    const add = (by: number) => {
      for (const { key } of keys) this.counts.add(this.keyOf(key), number, windowMs, by);
    };
    add(0);
    let isCounted = true;
    return {
      giveBack: () => {
        if (isCounted && currentWindow() === number) add(1);
        isCounted = false;
      },
    };
  }

  private keyOf(key: string): string {
    return `${this.limit}:returned:${key}`;
  }
}
