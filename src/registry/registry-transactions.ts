import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { portionsOf } from '../platform/database/value-list.js';
import { Registry } from './registry.js';
import { RegistryChange, RegistryRevision } from './registry-change.entity.js';
import { MAX_CHANGES } from './registry-revision.js';
import type { RegistryResource } from './resources/registry-resource.js';

/** A process that was away for longer reads the whole registry. */
const CHANGE_RETENTION_MS = 86_400_000;
const ROWS_PER_INSERT = 500;

/** What a transaction has done to one entry. */
export interface EntryChange {
  resource: RegistryResource;
  /** The key of the admin API. The key of the file is not used, because an agent's email must not be in the audit. */
  key: string;
  /** `released`: the registry file no longer lists the entry. */
  change: 'created' | 'changed' | 'deleted' | 'released';
  /** What has changed, for the audit. */
  fields?: string[];
  endsTokens: boolean;
}

/**
 * Ends the tokens of entries.
 *
 * @param keys the keys of the admin API
 * @param manager the transaction that changes or deletes the entries, in which their generations are raised already;
 *   `undefined` after this transaction
 */
export type TokenRevoker = (keys: string[], manager?: EntityManager) => Promise<void>;

/**
 * The transactions that change the registry. Each begins with the lock on the revision, which admits one writer at a
 * time, on all processes. A rejected change does not raise the revision, so that no process reads the registry again.
 */
@Injectable()
export class RegistryTransactions {
  private readonly revokers: { resource: RegistryResource; revoke: TokenRevoker }[] = [];

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /** The modules that issue tokens for entries of a resource register how these tokens end. */
  registerRevoker(resource: RegistryResource, revoke: TokenRevoker): void {
    this.revokers.push({ resource, revoke });
  }

  /**
   * Runs work that changes entries. Then the log has the changes, this process has read them, and the tokens that end
   * with them have ended.
   *
   * @param actor who is named in the audit
   * @param work calls `endTokens` with its manager where tokens end, and returns its changes
   */
  async run(
    actor: AuditParty,
    work: (manager: EntityManager) => Promise<EntryChange[]>,
    timeoutMs?: number,
  ): Promise<void> {
    const changes = await this.database.transaction(async (manager) => {
      await manager.increment(RegistryRevision, { id: 1 }, 'revision', 0); // takes the lock
      const done = await work(manager);
      if (done.length > 0) await this.raiseRevision(manager, done);
      return done;
    }, timeoutMs);
    for (const change of changes) this.recordAudit(actor, change);
    await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    await this.endTokens(changes);
  }

  /**
   * Ends the tokens of changed entries. It is called before the change is committed, so that a crash leaves no valid
   * token, and after it, for tokens that were issued in the meantime.
   */
  async endTokens(changes: EntryChange[], manager?: EntityManager): Promise<void> {
    for (const { resource, revoke } of this.revokers) {
      const ended = changes.filter((each) => each.endsTokens && each.resource === resource).map(({ key }) => key);
      if (ended.length > 0) await revoke(ended, manager);
    }
  }

  /** Raises the revision and logs the changed entries. Without the log, other processes read the whole registry. */
  private async raiseRevision(manager: EntityManager, changes: EntryChange[]): Promise<void> {
    await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
    if (changes.length > MAX_CHANGES) return;
    const revision = await currentRevision(manager);
    const expiresAt = new Date(this.clock.now() + CHANGE_RETENTION_MS);
    const rows = changes.map(({ resource, key }) => ({ revision, resource: resource.list, entryKey: key, expiresAt }));
    for (const values of portionsOf(rows, ROWS_PER_INSERT)) {
      await manager.createQueryBuilder().insert().into(RegistryChange).values(values).updateEntity(false).execute();
    }
  }

  private recordAudit(actor: AuditParty, { resource, key, change, fields = [] }: EntryChange): void {
    if (change === 'released') return;
    this.audit.success('registry.changed', actor, party(resource.auditKind, key), { details: { change, fields } });
  }
}

export async function currentRevision(manager: EntityManager): Promise<number> {
  return (await manager.findOneByOrFail(RegistryRevision, { id: 1 })).revision;
}
