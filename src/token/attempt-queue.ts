import { AbandonedTaskError, QueueFullError } from '../platform/bounded-queue.js';

/** Further requests of one key are rejected at once, because each waiting request takes memory and a connection. */
const MAX_WAITING_REQUESTS = 100;
/** A caller gets a response even if the requests before its own do not end. */
const MAX_WAIT_MS = 3_000;

/** The request has waited for the longest permitted time. */
export class QueueTimeoutError extends Error {
  constructor() {
    super(`the request has waited for ${MAX_WAIT_MS} ms`);
  }
}

/** A request that has keys, and may wait for other requests of the same keys. */
export interface QueuedRequest {
  keys: string[];
  /**
   * A key that has no room for the request; `undefined` if all have room.
   *
   * @throws an error that rejects the request
   */
  fullKey(): string | undefined;
}

/** A request that waits, the key that it waits for, and the functions that settle its promise. */
interface Waiter {
  request: QueuedRequest;
  key: string;
  resolve(): void;
  reject(error: unknown): void;
}

/** The requests of one key: the number of those that run, and those that wait, in the order of their arrival. */
interface RequestsOfKey {
  running: number;
  waiting: Set<Waiter>;
}

/**
 * Lets requests run while their keys have room. The others wait in a bounded queue, in the order of their arrival. A
 * `BoundedQueue` has one fixed bound. Here each request has several keys, and the room of a key changes.
 */
export class AttemptQueue {
  private readonly requests = new Map<string, RequestsOfKey>();

  /** The number of running requests of a key. */
  running(key: string): number {
    return this.requests.get(key)?.running ?? 0;
  }

  /**
   * Resolves when the request may run. The caller must then call `leave`.
   *
   * @param createSignal creates a signal that aborts when the client disconnects
   * @throws QueueFullError, QueueTimeoutError, AbandonedTaskError, errors of `fullKey`
   */
  async enter(request: QueuedRequest, createSignal: () => AbortSignal): Promise<void> {
    const full = request.fullKey();
    if (full === undefined) this.start(request);
    else await this.wait(request, full, createSignal());
  }

  /** Ends a running request, and starts the requests that waited for it, as far as there is room. */
  leave({ keys }: QueuedRequest): void {
    for (const key of keys) this.ofKey(key).running--;
    for (const key of keys) {
      const { waiting } = this.ofKey(key);
      for (const waiter of waiting) if (!this.startWaiter(waiter, key)) break;
      this.removeIfUnused(key);
    }
  }

  private start({ keys }: QueuedRequest): void {
    for (const key of keys) this.ofKey(key).running++;
  }

  /** Returns false if the key has no room for the waiter. Then it has none for the next waiters either. */
  private startWaiter(waiter: Waiter, key: string): boolean {
    try {
      const full = waiter.request.fullKey();
      if (full === key) return false;
      this.requests.get(key)?.waiting.delete(waiter);
      if (full !== undefined) {
        waiter.key = full;
        this.ofKey(full).waiting.add(waiter);
        return true;
      }
      this.start(waiter.request);
      waiter.resolve();
    } catch (error) {
      this.requests.get(key)?.waiting.delete(waiter);
      waiter.reject(error);
    }
    return true;
  }

  private async wait(request: QueuedRequest, key: string, abandoned: AbortSignal): Promise<void> {
    if (abandoned.aborted) throw new AbandonedTaskError();
    const { waiting } = this.ofKey(key);
    if (waiting.size >= MAX_WAITING_REQUESTS) throw new QueueFullError();
    await new Promise<void>((resolve, reject) => {
      const stop = (error: Error) => {
        this.requests.get(waiter.key)?.waiting.delete(waiter);
        settle(() => reject(error));
      };
      const timer = setTimeout(() => stop(new QueueTimeoutError()), MAX_WAIT_MS);
      const abandon = () => stop(new AbandonedTaskError());
      abandoned.addEventListener('abort', abandon);
      const settle = (resolveOrReject: () => void) => {
        clearTimeout(timer);
        abandoned.removeEventListener('abort', abandon);
        resolveOrReject();
      };
      const waiter: Waiter = {
        ...{ request, key },
        resolve: () => settle(resolve),
        reject: (error) => settle(() => reject(error)),
      };
      waiting.add(waiter);
    });
  }

  private ofKey(key: string): RequestsOfKey {
    const existing = this.requests.get(key);
    if (existing) return existing;
    const created = { running: 0, waiting: new Set<Waiter>() };
    this.requests.set(key, created);
    return created;
  }

  private removeIfUnused(key: string): void {
    const requests = this.requests.get(key);
    if (requests?.running === 0 && requests.waiting.size === 0) this.requests.delete(key);
  }
}
