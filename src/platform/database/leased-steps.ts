import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.js';
import { acquireLease, type Lease, releaseLease } from './lease.js';

/** The time of a step, of which the pause after it is a multiple, is taken as at least and at most this. */
const MIN_STEP_MS = 10;
const MAX_STEP_MS = 1_000;

/** Work in small steps that one process at a time does in the background. Each step extends the lease. */
export class LeasedSteps {
  readonly lease: Lease;
  private isStopping = false;

  constructor(
    private readonly database: Database,
    name: Lease['name'],
    /** How many times as long as a step the pause after it is, during which the rows are unlocked for requests. */
    private readonly pausesPerStep = 1,
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
      // measured, so that a slow database gets less of this work
      const stepMs = Math.min(Math.max(performance.now() - begunAt, MIN_STEP_MS), MAX_STEP_MS);
      await sleep(stepMs * this.pausesPerStep);
      begunAt = performance.now();
    }
    return { rows, isFinished: !this.isStopping };
  }
}
