import { Clock } from '@customer-authorization/service/grant';

/** A clock that a test sets forward and back. It runs at the speed of the real clock unless it is stopped. */
export class TestClock extends Clock {
  private offsetMs = 0;

  private constructor(private realTime: () => number) {
    super();
  }

  /** Starts at the real time and runs. */
  static running(): TestClock {
    return new TestClock(() => Date.now());
  }

  /** Stands still at a time, in milliseconds since 1970. */
  static stoppedAt(startMs: number): TestClock {
    return new TestClock(() => startMs);
  }

  override now(): number {
    return this.realTime() + this.offsetMs;
  }

  /** Sets the clock forward; negative numbers set it back. */
  advance({ seconds = 0, milliseconds = 0 }: { seconds?: number; milliseconds?: number }): void {
    this.offsetMs += seconds * 1000 + milliseconds;
  }

  /** Returns to the time that the clock would show if it had never been set. */
  reset(): void {
    this.offsetMs = 0;
  }

  /**
   * Does work while the clock shows other times only by `advance`, so that no proof expires and no window of a limit
   * ends because a machine is slow. Then the clock returns to its time.
   *
   * @internal
   */
  async whileStopped<Result>(work: () => Promise<Result>): Promise<Result> {
    const { realTime, offsetMs } = this;
    const stoppedMs = realTime();
    this.realTime = () => stoppedMs;
    try {
      return await work();
    } finally {
      this.realTime = realTime;
      this.offsetMs = offsetMs;
    }
  }
}
