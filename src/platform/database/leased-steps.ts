import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.js';
import { acquireLease, type Lease, releaseLease } from './lease.js';

/** The pause between two steps, during which the rows are unlocked for requests, is as long as the step within these. */
const MIN_PAUSE_MS = 10;
const MAX_PAUSE_MS = 1_000;

/** Work in small steps that one process at a time does in the background. Each step extends the lease. */
export class LeasedSteps {
  readonly lease: Lease;
  private isStopping = false;

  constructor(
    private readonly database: Database,
    name: Lease['name'],
  ) {
    this.lease = { name, owner: randomUUID() };
  }

  /** @returns false while another process has the lease */
  acquire(): Promise<boolean> {
    return this.database.transaction((manager) => acquireLease(manager, this.lease));
  }

  async release(): Promise<void> {
    await this.database.transaction((manager) => releaseLease(manager, this.lease));
  }

  /** The process stops. The step under way is the last one. */
  stop(): void {
    this.isStopping = true;
  }

  /**
   * Runs steps until they end, the process stops or another process has the lease.
   *
   * @param steps each returns a number of rows
   * @returns the sum of the rows, and whether the steps have ended and the work may continue
   */
  async run(steps: AsyncIterable<number>): Promise<{ rows: number; isFinished: boolean }> {
    let rows = 0;
    let begunAt = performance.now();
    for await (const count of steps) {
      rows += count;
      if (this.isStopping || !(await this.acquire())) return { rows, isFinished: false };
      // as long as the step, so that a slow database gets less of this work
      await sleep(Math.min(Math.max(performance.now() - begunAt, MIN_PAUSE_MS), MAX_PAUSE_MS));
      begunAt = performance.now();
    }
    return { rows, isFinished: !this.isStopping };
  }
}
