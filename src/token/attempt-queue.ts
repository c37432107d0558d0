import { AbandonedTaskError, QueueFullError } from '../platform/bounded-queue.js';

/** Further requests of one key are rejected immediately, because each waiting request takes memory and a connection. */
const MAX_WAITING_REQUESTS = 100;
/** A caller gets a response even if the requests before its own do not end. */
const MAX_WAIT_MS = 3_000;

export class QueueTimeoutError extends Error {
  constructor() {
    super(`the request has waited for ${MAX_WAIT_MS} ms`);
  }
}

export interface QueuedRequest {
  keys: string[];
  /** A key that has no room for the request; `undefined` if all have room. May throw an error that rejects the request. */
  fullKey(): string | undefined;
}

interface Waiter {
  request: QueuedRequest;
  key: string;
  /** Ends the wait: with the error, or because the request has started. */
  end(error?: unknown): void;
}

/**
 * Lets requests run while their keys have room. The others wait in a bounded queue, in the order of their arrival. A
 * `BoundedQueue` has one fixed bound. Here each request has several keys, and the room of a key changes.
 */
export class AttemptQueue {
  private readonly runningByKey = new Map<string, number>();
  /** By the key that they wait for, in the order of their arrival. */
  private readonly waitersByKey = new Map<string, Set<Waiter>>();

  running(key: string): number {
    return this.runningByKey.get(key) ?? 0;
  }

  /**
   * Resolves when the request may run. The caller must then call `leave`.
   *
   * @throws QueueFullError, QueueTimeoutError, AbandonedTaskError, errors of `fullKey`
   */
  async enter(request: QueuedRequest, createSignal: () => AbortSignal): Promise<void> {
    const full = request.fullKey();
    if (full === undefined) this.count(request, 1);
    else await this.wait(request, full, createSignal());
  }

  /** Ends a running request, and starts the requests that waited for it, as far as there is room. */
  leave(request: QueuedRequest): void {
    this.count(request, -1);
    for (const key of request.keys)
      for (const waiter of this.waitersByKey.get(key) ?? []) if (!this.startOrMove(waiter)) break;
  }

  private count({ keys }: QueuedRequest, difference: 1 | -1): void {
    for (const key of keys) {
      const running = this.running(key) + difference;
      if (running === 0) this.runningByKey.delete(key);
      else this.runningByKey.set(key, running);
    }
  }

  /** Returns false if the key has no room for the waiter. Then it has none for the next waiters either. */
  private startOrMove(waiter: Waiter): boolean {
    try {
      const full = waiter.request.fullKey();
      if (full === waiter.key) return false;
      if (full === undefined) {
        this.count(waiter.request, 1);
        waiter.end();
      } else {
        this.remove(waiter);
        waiter.key = full;
        this.add(waiter);
      }
    } catch (error) {
      waiter.end(error);
    }
    return true;
  }

  private async wait(request: QueuedRequest, key: string, abandoned: AbortSignal): Promise<void> {
    if (abandoned.aborted) throw new AbandonedTaskError();
    if ((this.waitersByKey.get(key)?.size ?? 0) >= MAX_WAITING_REQUESTS) throw new QueueFullError();
    await new Promise<void>((resolve, reject) => {
      const end = (error?: unknown) => {
        this.remove(waiter);
        clearTimeout(timer);
        abandoned.removeEventListener('abort', abandon);
        if (error === undefined) resolve();
        else reject(error);
      };
      const timer = setTimeout(() => end(new QueueTimeoutError()), MAX_WAIT_MS);
      const abandon = () => end(new AbandonedTaskError());
      abandoned.addEventListener('abort', abandon);
      const waiter: Waiter = { request, key, end };
      this.add(waiter);
    });
  }

  private add(waiter: Waiter): void {
    const waiters = this.waitersByKey.get(waiter.key) ?? new Set();
    this.waitersByKey.set(waiter.key, waiters.add(waiter));
  }

  private remove(waiter: Waiter): void {
    const waiters = this.waitersByKey.get(waiter.key);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.waitersByKey.delete(waiter.key);
  }
}
