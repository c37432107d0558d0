import { Logger } from '@nestjs/common';

/** Statements must fail for this long without any success before the log calls it an outage. */
const MIN_OUTAGE_MS = 1_000;

/** Logs the start of an outage of the database, and its end. A single statement that times out is no outage. */
export class OutageLog {
  private readonly logger = new Logger('Database');
  private firstFailureAt: number | undefined;
  private isLogged = false;

  /** @param now milliseconds of a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** A statement found the database unavailable. */
  failed(error: unknown): void {
    this.firstFailureAt ??= this.now();
    if (this.isLogged || this.now() - this.firstFailureAt < MIN_OUTAGE_MS) return;
    this.isLogged = true;
    this.logger.warn(`the database is unavailable, and requests that need it get 503: ${(error as Error).message}`);
  }

  /** A statement succeeded. */
  succeeded(): void {
    if (this.firstFailureAt === undefined) return;
    const seconds = Math.round((this.now() - this.firstFailureAt) / 1000);
    if (this.isLogged) this.logger.log(`the database is available again after ${seconds} s`);
    this.firstFailureAt = undefined;
    this.isLogged = false;
  }
}
