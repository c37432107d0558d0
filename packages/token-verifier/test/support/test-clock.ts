import type { Clock } from '../../src/clock.js';

/** A clock that moves only when a test moves it. */
export class TestClock implements Clock {
  private monotonicMs = 0;

  constructor(private wallMs = 1_800_000_000_000) {}

  now(): number {
    return this.wallMs;
  }

  monotonic(): number {
    return this.monotonicMs;
  }

  seconds(): number {
    return Math.floor(this.wallMs / 1000);
  }

  /** Time passes. */
  advance(seconds: number): void {
    this.wallMs += seconds * 1000;
    this.monotonicMs += seconds * 1000;
  }

  /** An operator or NTP sets the clock; negative to set it back. */
  set(bySeconds: number): void {
    this.wallMs += bySeconds * 1000;
  }
}
