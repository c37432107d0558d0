import { Injectable } from '@nestjs/common';
import { RevocationPublisher } from '../../access-token/feed/revocation-publisher.js';

/** Below half of the connections of the management port, so that waiting requests leave room for probes. */
export const MAX_WAITING_REQUESTS = 100;

/** What ended a wait: new positions, or something after which the request gets its response. */
export type WaitResult = 'changed' | 'ended';

/** The requests that wait for new revocations. They hold no connection to the database. */
@Injectable()
export class FeedWaiters {
  /** Ends of the waits, the longest wait first. */
  private readonly ends = new Set<(result: WaitResult) => void>();

  constructor(publisher: RevocationPublisher) {
    publisher.state.subscribe(() => {
      for (const end of [...this.ends]) end(publisher.stopped ? 'ended' : 'changed');
    });
  }

  /** The number of waiting requests. */
  get count(): number {
    return this.ends.size;
  }

  /**
   * Waits for new positions. The wait ends after `milliseconds`, when the process stops, when the caller disconnects,
   * or if too many requests wait. The longest wait then ends, so that each caller still gets each revocation.
   */
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
}
