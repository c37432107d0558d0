import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { Database } from '../platform/database/database.js';
import { isDuplicate } from '../platform/database/database-errors.js';
import { Registry } from './registry.js';
import { RegistryRevision } from './registry-revision.entity.js';

/**
 * The transactions of the admin API. Each begins with an increment of the revision: the lock on that row admits one
 * writer at a time, on all processes.
 */
@Injectable()
export class RegistryTransactions {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
  ) {}

  /** @throws OAuthError of `work`; `conflict` if another entry already has the key */
  async run(work: (manager: EntityManager) => Promise<void>): Promise<void> {
    try {
      const error = await this.database.transaction(async (manager) => {
        await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
        return work(manager).catch(asResult);
      });
      if (error) throw error;
      await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    } catch (error) {
      if (isDuplicate(error)) throw OAuthError.conflict('the entry already exists');
      throw error;
    }
  }
}

/**
 * Turns a rejection into a result, so that the transaction is committed although the work has changed nothing. A
 * rollback on SQLite's only connection would also undo the writes of other requests.
 */
function asResult(error: unknown): OAuthError {
  if (error instanceof OAuthError) return error;
  throw error;
}
