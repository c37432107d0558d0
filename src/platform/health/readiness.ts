import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { selectStatement } from '../database/statement.js';

const READ_REVISION = selectStatement<[], unknown>({
  columns: ['revision'],
  from: 'registry_revision LIMIT 1',
  batch: true,
});

/** Whether requests should come to this process. */
@Injectable()
export class Readiness {
  private stopping = false;

  constructor(private readonly database: Database) {}

  /**
   * Reads a real table, since a server without quorum still answers `SELECT 1`; bounded by the database's deadline (1 s).
   *
   * @returns why this process is not ready, `undefined` when it is
   */
  async obstacle(): Promise<'stopping' | 'database' | undefined> {
    if (this.stopping) return 'stopping';
    try {
      await this.database.select(READ_REVISION, []);
      return undefined;
    } catch {
      return 'database';
    }
  }

  /** From now on the cluster sends nothing more. */
  stop(): void {
    this.stopping = true;
  }
}
