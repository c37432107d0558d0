export class QueueFullError extends Error {
  constructor() {
    super('the queue is full');
  }
}

export class AbandonedTaskError extends Error {
  constructor() {
    super('the task was abandoned before it began');
  }
}

interface Bounds {
  maxRunning: number;
  maxWaiting: number;
}

export class BoundedQueue {
  private running = 0;
  /** A Set keeps the order of insertion, and any task can leave it. */
  private readonly starts = new Set<() => void>();

  constructor(private readonly bounds: Bounds) {}

  get waiting(): number {
    return this.starts.size;
  }

  /**
   * A waiting task leaves the queue and never runs when `abandoned` aborts. @throws QueueFullError, AbandonedTaskError
   */
  async run<Result>(task: () => Promise<Result>, abandoned?: AbortSignal): Promise<Result> {
    if (abandoned?.aborted) throw new AbandonedTaskError();
    if (this.running < this.bounds.maxRunning) this.running++;
    else await this.waitForSlot(abandoned);
    try {
      return await task();
    } finally {
      this.startNext();
    }
  }

  /** A task that still waits after `waitMs` is abandoned. `AbortSignal.timeout` would keep its timer after the task. */
  runWithin<Result>(waitMs: number, task: () => Promise<Result>): Promise<Result> {
    if (this.running < this.bounds.maxRunning) return this.run(task);
    const wait = new AbortController();
    const timer = setTimeout(() => wait.abort(), Math.max(waitMs, 0)).unref(); // the time may be over already
    return this.run(task, wait.signal).finally(() => clearTimeout(timer));
  }

  /** Resolves to a function that ends the turn, for a task that other code runs. */
  begin(waitMs: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      this.runWithin(waitMs, () => new Promise<void>((end) => resolve(end))).catch(reject);
    });
  }

  private waitForSlot(abandoned: AbortSignal | undefined): Promise<void> {
    if (this.waiting >= this.bounds.maxWaiting) throw new QueueFullError();
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.starts.delete(start);
        reject(new AbandonedTaskError());
      };
      const start = () => {
        abandoned?.removeEventListener('abort', leave);
        resolve();
      };
      this.starts.add(start);
      abandoned?.addEventListener('abort', leave, { once: true });
    });
  }

  private startNext(): void {
    const [start] = this.starts;
    if (!start) {
      this.running--;
      return;
    }
    this.starts.delete(start);
    start();
  }
}
