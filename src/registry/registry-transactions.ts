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

  /** @throws OAuthError of the work; `conflict` where another entry has the key already */
  async run(work: (manager: EntityManager) => Promise<void>): Promise<void> {
    try {
      const error = await this.database.transaction(async (manager) => {
        await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
        return work(manager).catch(asResult);
      });
      if (error) throw error;
      await this.registry.renew().catch(() => undefined); // committed: the next look at the revision finds the change
    } catch (error) {
      if (isDuplicate(error)) throw OAuthError.conflict('is there already');
      throw error;
    }
  }
}

/**
 * Work that is rejected has changed nothing, and is committed: a rollback on SQLite's one connection ends others'
 * writes.
 */
function asResult(error: unknown): OAuthError {
  if (error instanceof OAuthError) return error;
  throw error;
}
