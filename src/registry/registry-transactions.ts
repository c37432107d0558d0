import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { isDuplicate } from '../platform/database/database-errors.js';
import { type ChangedEntry, lockRevision, raiseRevision } from './changes/raise-revision.js';
import { Registry } from './registry.js';

/**
 * An operator's change may wait for many others, because they are made one after another. The time is over before that
 * of the response (admin-timeout.interceptor.ts).
 */
const OPERATOR_TIMEOUT_MS = 8_000;

/**
 * The transactions of the admin API. Each begins with the lock on the revision, which admits one writer at a time, on
 * all processes. A rejected change does not raise the revision, so that no process reads the registry again.
 */
@Injectable()
export class RegistryTransactions {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly clock: Clock,
  ) {}

  /**
   * @param changed the entry that `work` creates, changes or deletes
   * @throws OAuthError of `work`; `conflict` if another entry already has the key
   */
  async run(changed: ChangedEntry, work: (manager: EntityManager) => Promise<void>): Promise<void> {
    try {
      await this.database.transaction(async (manager) => {
        await lockRevision(manager);
        await work(manager);
        await raiseRevision(manager, [changed], this.clock.now());
      }, OPERATOR_TIMEOUT_MS);
      await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    } catch (error) {
      if (isDuplicate(error)) throw OAuthError.conflict('the entry already exists');
      throw error;
    }
  }
}
