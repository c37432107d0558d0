import { Injectable } from '@nestjs/common';

/** The only source of time, so that tests can replace it. */
@Injectable()
export class Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number {
    return Date.now();
  }

  /** Whole seconds since 1970-01-01T00:00:00Z, as JWT claims count them (NumericDate, RFC 7519 §2). */
  seconds(): number {
    return Math.floor(this.now() / 1000);
  }
}

export const DAY_MS = 86_400_000;

/** The day of a time (milliseconds since 1970), in days since 1970 (UTC). */
export const dayOf = (timeMs: number): number => Math.floor(timeMs / DAY_MS);

/**
 * How far the clock of this machine is ahead of that of the database, whose present time was just read; negative if it
 * is behind. Setting a `Clock` in a test changes nothing: the database then has the time of the test too.
 */
export const aheadOfDatabaseMs = (databaseTimeMs: number): number => Date.now() - databaseTimeMs;
