import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { selectStatement } from '../database/statement.js';

const READ_REVISION = selectStatement<[], unknown>({
  columns: ['revision'],
  from: 'registry_revision LIMIT 1',
  batch: true,
});

/** Knows whether this process can serve requests. */
@Injectable()
export class Readiness {
  private stopping = false;

  constructor(private readonly database: Database) {}

  /**
   * Reads a real table, because a server without quorum still responds to `SELECT 1`. The time limit of a statement, 1
   * s, also limits this check.
   *
   * @returns why this process is not ready; `undefined` if it is ready
   */
  async unreadyReason(): Promise<'stopping' | 'database' | undefined> {
    if (this.stopping) return 'stopping';
    try {
      await this.database.select(READ_REVISION, []);
      return undefined;
    } catch {
      return 'database';
    }
  }

  /** Makes the process unready, so that the cluster stops sending requests. */
  stop(): void {
    this.stopping = true;
  }
}
