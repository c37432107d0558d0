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
