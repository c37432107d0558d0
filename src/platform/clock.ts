import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Milliseconds: with one less, what comes next could be counted to the same one by rounding. */
const TICK = 2;
/** Milliseconds; no time that is waited for is further ahead, unless the clock was set back since. */
const LONGEST_WAIT = 500;

/** The only source of time. Tests move it by providing another. */
@Injectable()
export class Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number {
    return Date.now();
  }

  /** Whole seconds since 1970-01-01T00:00:00Z, as JWT claims count them (RFC 7519 section 2, NumericDate). */
  seconds(): number {
    return Math.floor(this.now() / 1000);
  }

  /** Waits until a time, half a second ahead at most, is past, so that whoever answers to it comes later by this clock too. */
  async reach(time: number): Promise<void> {
    // measured apart from the clock: one that is set back must not hold anybody up
    const end = performance.now() + Math.min(time - this.now(), LONGEST_WAIT) + TICK;
    const rest = () => end - performance.now();
    for (let wait = rest(); wait > 0; wait = rest()) await sleep(wait); // a timer may end early
  }
}
