import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import { currentRevision, lockRevision, raiseRevision } from '../changes/raise-revision.js';
import { auditRegistryChange } from '../registry-audit.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import type { Select } from '../rows/entity-reader.js';
import { TokenRevokers } from '../token-revokers.js';
import { type AppliedState, rememberApplied, SupersededRegistryFileError, supersedingFile } from './applied-files.js';
import {
  type AppliedEntry,
  changedKeys,
  compareRows,
  endsTokens,
  type RowChanges,
  writeChanges,
} from './apply-entries.js';
import { type ListedRows, StaleSecretsError, usesStaleSecrets } from './listed-rows.js';
import { RegistryFileError } from './read-registry-file.js';
import type { RegistryDocument } from './registry-document.js';
import { StoredEntries } from './stored-entries.js';

/** A valid registry file whose secrets are hashed. */
interface FileToWrite {
  document: RegistryDocument;
  listed: ListedRows[];
  /** The stored entries before the transaction. */
  stored: StoredEntries;
  /** What is recorded about the file. */
  state: Omit<AppliedState, 'registryRevision'>;
  force: boolean;
  /** Whether the entries are written as by the admin API, next to those of the file in force. */
  merge: boolean;
}

/** Writes a registry file to the database in one transaction, audits the changes and ends tokens. */
@Injectable()
export class RegistryFileWriter {
  constructor(
    private readonly database: Database,
    private readonly tokenRevokers: TokenRevokers,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /**
   * @throws SupersededRegistryFileError
   * @throws StaleSecretsError if another process has changed secrets that the file lists, in which case nothing is changed
   */
  async write(file: FileToWrite): Promise<AppliedEntry[]> {
    const changes = await compareAll(file, file.stored);
    const applied = await this.database.transaction((manager) => this.writeLocked(manager, file, changes));
    this.recordAudit(applied);
    await this.endTokens(applied, 'after');
    return applied;
  }

  /** @param compared the changes in comparison with the entries before the transaction */
  private async writeLocked(
    manager: EntityManager,
    file: FileToWrite,
    compared: RowChanges[],
  ): Promise<AppliedEntry[]> {
    const { document, listed, stored, state, force, merge } = file;
    await lockRevision(manager);
    const superseding =
      force || merge
        ? undefined
        : await supersedingFile((options) => manager.find(AppliedRegistryFile, options), state);
    if (superseding) throw new SupersededRegistryFileError(superseding);
    const select: Select = (statement, parameters) => this.database.selectWith(manager, statement, parameters);
    const before = await currentRevision(manager);
    const isChanged = before !== stored.revision; // by another process
    const present = isChanged ? await StoredEntries.read(before, document, select) : stored;
    if (isChanged && usesStaleSecrets(listed, stored, present)) throw new StaleSecretsError();
    const owned = merge ? entriesOwnedByFile(listed, present) : [];
    if (owned.length > 0) throw new RegistryFileError(owned);
    const changes = isChanged ? await compareAll(file, present) : compared;
    for (const each of changes) await writeChanges(manager, each);
    const applied = changes.flatMap(({ entries }) => entries);
    const keys = changes.flatMap((each) => changedKeys(each).map((key) => ({ resource: each.resource, key })));
    const revision = keys.length > 0 ? await raiseRevision(manager, keys, this.clock.now()) : before;
    if (!merge) await rememberApplied(manager, { ...state, registryRevision: revision }, this.clock.now());
    await this.endTokens(applied, 'before', manager);
    return applied;
  }

  private recordAudit(applied: AppliedEntry[]): void {
    for (const { resource, outcome, changes, row } of applied) {
      if (outcome === 'unchanged') continue;
      const key = String(row[resource.key.column]);
      const fields = outcome === 'changed' ? changes : [];
      auditRegistryChange(this.audit, { actor: 'service', resource, key, change: outcome, fields });
    }
  }

  private async endTokens(applied: AppliedEntry[], moment: 'before' | 'after', manager?: EntityManager): Promise<void> {
    const ended = applied.filter(endsTokens);
    for (const resource of REGISTRY_RESOURCES) {
      const rows = ended.filter((entry) => entry.resource === resource).map(({ row }) => row);
      const keys = rows.map((row) => String(row[resource.key.column]));
      if (keys.length > 0) await this.tokenRevokers.revoke(resource, keys, moment, manager);
    }
  }
}

async function compareAll({ listed, merge }: FileToWrite, stored: StoredEntries): Promise<RowChanges[]> {
  const changes: RowChanges[] = [];
  for (const rows of listed) changes.push(await compareRows(rows, stored, { merge }));
  return changes;
}

/** A violation for each listed entry that belongs to the registry file of the pods. */
function entriesOwnedByFile(listed: ListedRows[], stored: StoredEntries): string[] {
  return listed.flatMap(({ resource, rows }) =>
    rows
      .map((row) => String(row[resource.fileKey.column]))
      .filter((key) => stored.rowWithKey(resource, key)?.ownedByFile)
      .map((key) => `${resource.noun} ${key}: belongs to the registry file; change it there`),
  );
}
