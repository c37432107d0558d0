import { Clock } from '../platform/clock.js';

/** The clock of the tests: goes with the real one, from wherever it was moved to. */
export class MovingClock extends Clock {
  private offset = 0;

  override now(): number {
    return super.now() + this.offset;
  }

  /** Moves on, or back, by seconds. */
  move(seconds: number): void {
    this.offset += seconds * 1000;
  }

  /** Goes back to the real time. */
  reset(): void {
    this.offset = 0;
  }
}
