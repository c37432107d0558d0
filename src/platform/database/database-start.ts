import { Injectable, Logger } from '@nestjs/common';
import { databaseAtStart } from './retry-policy.js';

/**
 * Runs the steps of a start that need the database. While the database is unavailable, a step runs again each second,
 * until `maxWaitMs` is over, and the process is alive but not ready.
 */
@Injectable()
export class DatabaseStart {
  private readonly logger = new Logger('Database');
  private logged = '';

  constructor(private readonly maxWaitMs: number) {}

  /** Whether the process is a command, which leaves the work in the background to the service. */
  get isOfCommand(): boolean {
    return this.maxWaitMs === 0;
  }

  async run<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = await databaseAtStart(this.maxWaitMs).run(step, (error) => {
      const { message } = error as Error;
      if (message !== this.logged)
        this.logger.warn(`the database is not usable yet; the process tries again each second: ${message}`);
      this.logged = message;
    });
    if (this.logged !== '') this.logger.log('the database is usable now');
    this.logged = '';
    return result;
  }
}
