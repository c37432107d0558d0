/** The times that the verifier needs. Tests replace the clock. */
export interface Clock {
  /** Milliseconds since 1970. An operator or NTP may set this time. */
  now(): number;
  /** Milliseconds since an arbitrary moment. This time never goes back. */
  monotonic(): number;
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** The time of both clocks at the same moment. */
export interface Moment {
  now: number;
  monotonic: number;
}

export function momentOf(clock: Clock): Moment {
  return { now: clock.now(), monotonic: clock.monotonic() };
}

export function momentBefore({ now, monotonic }: Moment, milliseconds: number): Moment {
  return { now: now - milliseconds, monotonic: monotonic - milliseconds };
}

/**
 * The milliseconds since a moment. The longer of the two times counts: the monotonic time stops while a machine is
 * suspended, and the other time may be set back.
 */
export function ageMs(moment: Moment, clock: Clock): number {
  return Math.max(clock.now() - moment.now, clock.monotonic() - moment.monotonic);
}
