import { Injectable } from '@nestjs/common';

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
}
