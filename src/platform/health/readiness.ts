import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';

/** A process whose writes have failed for this long is not ready. */
const MAX_WITHOUT_WRITE_SECONDS = 10;

/**
 * Knows whether the cluster may send requests to this process (docs/decisions/0028-readiness.md). The listener itself
 * responds until the application has started, so an instance of this class means that the database was usable once.
 */
@Injectable()
export class Readiness {
  private stopping = false;

  constructor(private readonly database: Database) {}

  /** Why this process is not ready; `undefined` if it is ready. */
  async unreadyReason(): Promise<string | undefined> {
    if (this.stopping) return 'stopping';
    const seconds = await this.database.secondsWithoutWrite();
    return seconds < MAX_WITHOUT_WRITE_SECONDS ? undefined : 'no write to the database succeeds';
  }

  /** Makes the process unready, so that the cluster stops sending requests. */
  stop(): void {
    this.stopping = true;
  }
}
