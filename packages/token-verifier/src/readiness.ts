type Part = 'list' | 'keys';

/** The longest delay of a timer of Node.js. */
const MAX_TIMER_DELAY_MS = 2 ** 31 - 1;

/** Whether the full list of revocations and the keys were read once. */
export class Readiness {
  private readonly missing = new Set<Part>(['list', 'keys']);
  /** Reports to the waiting promises that nothing is missing, or that the verifier was closed. */
  private resolve!: () => void;
  reject!: (reason: Error) => void;
  private readonly complete = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  constructor() {
    this.complete.catch(() => {}); // The process must not end because no caller waits.
  }

  has(part: Part): boolean {
    return !this.missing.has(part);
  }

  add(part: Part): void {
    this.missing.delete(part);
    if (this.missing.size === 0) this.resolve();
  }

  /**
   * Resolves when nothing is missing. Rejects with the error of `onAbort` when the signal aborts.
   *
   * The timers between two attempts do not keep the process alive, and neither does `AbortSignal.timeout`. A timer does
   * so until the promise is settled. Otherwise a process without a server ends during `await ready()`, with code 13.
   */
  async wait(signal: AbortSignal | undefined, onAbort: () => Error): Promise<void> {
    const keepAlive = setInterval(() => {}, MAX_TIMER_DELAY_MS);
    let abort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(onAbort());
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort);
    });
    try {
      await Promise.race([aborted, this.complete]);
    } finally {
      clearInterval(keepAlive);
      signal?.removeEventListener('abort', abort);
    }
  }
}
