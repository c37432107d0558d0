import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import { aheadOfDatabaseMs, Clock } from '../clock.js';
import { MetricsRegistry } from '../metrics.js';
import { timeOf } from './sql-dialect.js';

/** Beyond this, other processes reject the tokens of this process, or it rejects theirs (protocol §3.2). */
const MAX_OFFSET_SECONDS = 30;

/** The clock of the database, which all processes share. SQLite has the clock of the process. */
@Injectable()
export class DatabaseClock {
  /** How far the clock of this machine was ahead at the last comparison. */
  private aheadMs = 0;

  constructor(
    private readonly clock: Clock,
    metrics: MetricsRegistry,
  ) {
    metrics.gauge(
      'cas_clock_offset_seconds',
      'Seconds by which the clock of the process is ahead of that of the database; negative if it is behind.',
      () => this.aheadMs / 1000,
    );
  }

  /** Milliseconds since 1970. */
  now(): number {
    return this.clock.now() - this.aheadMs;
  }

  /** @param databaseTime the present time of the database, which was just read */
  compare(databaseTime: Date | string): void {
    this.aheadMs = aheadOfDatabaseMs(timeOf(databaseTime));
  }

  /**
   * Only a start asks this (docs/decisions/0028-readiness.md), and tries again while it throws.
   *
   * @throws ServiceUnavailableException if the clocks differ too much
   */
  assertClose(): void {
    const seconds = Math.round(this.aheadMs / 1000);
    if (Math.abs(this.aheadMs) <= MAX_OFFSET_SECONDS * 1000) return;
    throw new ServiceUnavailableException(
      `the clock of this machine is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} that of the database; set the one that is wrong`,
    );
  }
}
