/** The queue has as many waiting tasks as it admits. */
export class QueueFullError extends Error {
  constructor() {
    super('the queue is full');
  }
}

/** The caller gave the task up before it began. */
export class AbandonedTaskError extends Error {
  constructor() {
    super('the task was abandoned before it began');
  }
}

interface Bounds {
  maxRunning: number;
  maxWaiting: number;
}

/** Runs asynchronous tasks in the order of their arrival, a bounded number at a time, and lets a bounded number wait. */
export class BoundedQueue {
  private running = 0;
  /** Starts the tasks that wait; a Set keeps the order of insertion, and any task can leave. */
  private readonly starts = new Set<() => void>();

  constructor(private readonly bounds: Bounds) {}

  /** How many tasks wait. */
  get waiting(): number {
    return this.starts.size;
  }

  /**
   * Resolves to the result of the task.
   *
   * @param abandoned a task that waits when this signal aborts leaves the queue and never runs
   * @throws QueueFullError, AbandonedTaskError
   */
  async run<Result>(task: () => Promise<Result>, abandoned?: AbortSignal): Promise<Result> {
    if (abandoned?.aborted) throw new AbandonedTaskError();
    if (this.running < this.bounds.maxRunning) this.running++;
    else await this.takeTurn(abandoned);
    try {
      return await task();
    } finally {
      this.startNext();
    }
  }

  /** Waits until a task that has ended hands its slot over. */
  private takeTurn(abandoned: AbortSignal | undefined): Promise<void> {
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
