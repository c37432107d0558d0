import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { isDuplicate, isRolledBack } from '../../platform/database/database-errors.js';
import { RetryPolicy } from '../../platform/database/retry-policy.js';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { Registry } from '../registry.js';
import { auditRegistryChange } from '../registry-audit.js';
import { RegistryRevision } from '../registry-revision.entity.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { TokenRevokers } from '../token-revokers.js';
import { rememberApplied, SupersededRegistryFileError, supersedingFile } from './applied-files.js';
import { type AppliedEntry, applyRows, endsTokens, type ListedRows, rowsOf } from './apply-entries.js';
import { checkDocument } from './check-document.js';
import { exportRegistry } from './export-registry.js';
import type { FileContent } from './file-content.js';
import { RegistryFileError, readRegistryFile } from './read-registry-file.js';
import { StoredEntries } from './stored-entries.js';

/** Retries when another process applies a registry file at the same time. */
const CONCURRENT_FILE = new RetryPolicy({
  attempts: 5,
  pauseMs: () => 0,
  isRetryable: (error) => isDuplicate(error) || isRolledBack((error as Error).cause ?? error),
});

/** Applies a registry file to the database, and exports the registry of the database as a file. */
@Injectable()
export class RegistryFile {
  private readonly logger = new Logger(RegistryFile.name);

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly tokenRevokers: TokenRevokers,
    private readonly settingsClasses: GrantSettingsClasses,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /**
   * Creates and changes the entries that the file lists, in one transaction. Removing an entry from the file does not
   * delete the entry, but lets the admin API change it. Applying the same file again changes nothing.
   *
   * @param force applies the file even if it is superseded
   * @throws RegistryFileError with every violation, in which case nothing is changed
   * @throws SupersededRegistryFileError
   */
  async apply(path: string, { force = false } = {}): Promise<AppliedEntry[]> {
    const { document, violations: formViolations, content } = await readRegistryFile(path);
    // before the other checks, so that a pod with a superseded file starts even if the file is no longer valid
    if (!force) await this.assertNotSuperseded(content);
    const before = await StoredEntries.read(this.database);
    const checked = await checkDocument(document, formViolations, before, this.settingsClasses);
    for (const each of checked.toleratedPaths) {
      this.logger.warn(`${each}: too short; accepted, because it has not changed`);
    }
    if (checked.violations.length > 0) throw new RegistryFileError(checked.violations);
    let stored: StoredEntries | undefined = before;
    const applyOnce = async () => {
      const listed = await rowsOf(document, stored ?? (await StoredEntries.read(this.database)));
      stored = undefined; // a retry must read what the other process has written
      const applied = await this.database.transaction((manager) => this.write(manager, listed, content, force));
      if (applied instanceof SupersededRegistryFileError) throw applied;
      for (const warning of checked.warnings) this.logger.warn(`the registry file: ${warning}`);
      this.recordAudit(applied);
      await this.endTokens(applied, 'after');
      await this.registry.renew();
      return applied;
    };
    return CONCURRENT_FILE.run(applyOnce);
  }

  /** The registry as YAML, without secrets. */
  export(): Promise<string> {
    return exportRegistry(this.database);
  }

  private recordAudit(applied: AppliedEntry[]): void {
    for (const { resource, outcome, changes, row } of applied) {
      if (outcome === 'unchanged') continue;
      const key = String(row[resource.key.column]);
      const fields = outcome === 'changed' ? changes : [];
      auditRegistryChange(this.audit, { actor: 'service', resource, key, change: outcome, fields });
    }
  }

  private async assertNotSuperseded(content: FileContent): Promise<void> {
    const superseding = await supersedingFile((options) => this.database.read(AppliedRegistryFile, options), content);
    if (superseding) throw new SupersededRegistryFileError(superseding);
  }

  private async write(
    manager: EntityManager,
    listed: ListedRows[],
    content: FileContent,
    force: boolean,
  ): Promise<AppliedEntry[] | SupersededRegistryFileError> {
    const all: AppliedEntry[] = [];
    let changed = false;
    // locks the row that the admin API also locks first
    await manager.increment(RegistryRevision, { id: 1 }, 'revision', 0);
    const superseding = force
      ? undefined
      : await supersedingFile((options) => manager.find(AppliedRegistryFile, options), content);
    if (superseding) return new SupersededRegistryFileError(superseding);
    for (const rows of listed) {
      const [applied, anyChange] = await applyRows(manager, rows);
      all.push(...applied);
      changed ||= anyChange;
    }
    if (changed) await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
    await rememberApplied(manager, content, this.clock.now());
    await this.endTokens(all, 'before');
    return all;
  }

  private async endTokens(applied: AppliedEntry[], moment: 'before' | 'after'): Promise<void> {
    const ended = applied.filter(endsTokens);
    for (const resource of REGISTRY_RESOURCES) {
      const rows = ended.filter((entry) => entry.resource === resource).map(({ row }) => row);
      const keys = rows.map((row) => String(row[resource.key.column]));
      if (keys.length > 0) await this.tokenRevokers.revoke(resource, keys, moment);
    }
  }
}
