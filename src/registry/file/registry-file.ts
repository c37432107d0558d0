import { Injectable, Logger } from '@nestjs/common';
import { Database } from '../../platform/database/database.js';
import { isDuplicate, isRolledBack } from '../../platform/database/database-errors.js';
import { RetryPolicy } from '../../platform/database/retry-policy.js';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import { readRevision } from '../changes/read-revision.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { Registry } from '../registry.js';
import type { Select } from '../rows/entity-reader.js';
import { latestFile, SupersededRegistryFileError, supersedingFile } from './applied-files.js';
import type { AppliedEntry } from './apply-entries.js';
import { checkDocument } from './check-document.js';
import { entriesOfFile } from './entries-of-file.js';
import { exportRegistry } from './export-registry.js';
import type { FileContent } from './file-content.js';
import { FileInForce } from './file-in-force.js';
import { rowsOf, StaleSecretsError } from './listed-rows.js';
import { RegistryFileError, readRegistryFile } from './read-registry-file.js';
import { RegistryFileWriter } from './registry-file-writer.js';
import { RegistrySource } from './registry-source.js';
import { warningsOf } from './registry-warnings.js';
import { StoredEntries } from './stored-entries.js';

/** Retries when another process applies a registry file at the same time. */
const CONCURRENT_FILE = new RetryPolicy({
  attempts: 5,
  pauseMs: () => 0,
  isRetryable: (error) =>
    error instanceof StaleSecretsError || isDuplicate(error) || isRolledBack((error as Error).cause ?? error),
});

interface ApplyOptions {
  /** Applies the file even if it is superseded. */
  force?: boolean;
  /** Checks the file and compares it with the database even if it is in force. */
  compare?: boolean;
  /** Adds the entries as the admin API does: they do not belong to the file, and the file in force stays the same. */
  merge?: boolean;
}

/** Applies a registry file to the database, and exports the registry of the database as a file. */
@Injectable()
export class RegistryFile {
  private readonly logger = new Logger(RegistryFile.name);
  private readonly select: Select;

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly fileInForce: FileInForce,
    private readonly writer: RegistryFileWriter,
    private readonly settingsClasses: GrantSettingsClasses,
  ) {
    this.select = (statement, parameters) => database.select(statement, parameters);
  }

  /**
   * Reads a file without applying it.
   *
   * @param before the same file as it was read before
   * @throws RegistryFileError if the file cannot be read
   */
  async read(path: string, before?: RegistrySource): Promise<RegistrySource> {
    const findSecretFiles = (text: string) => this.fileInForce.secretFilesOf(text);
    return RegistrySource.read(path, before, findSecretFiles).catch((error) => {
      throw (error as NodeJS.ErrnoException).syscall ? new RegistryFileError(['the file cannot be read']) : error;
    });
  }

  /**
   * Creates and changes the entries that the file lists, in one transaction. Removing an entry from the file does not
   * delete the entry, but lets the admin API change it. Applying the same file again changes nothing.
   *
   * @throws RegistryFileError with every violation, in which case nothing is changed
   * @throws SupersededRegistryFileError
   */
  async apply(path: string, options: ApplyOptions = {}): Promise<AppliedEntry[]> {
    const source = await this.read(path);
    return (await this.applySource(source, options)) ?? entriesOfFile(this.select);
  }

  /**
   * Applies a file that was read, as `apply` does.
   *
   * @returns `undefined` if the file is in force, so that nothing had to be compared
   */
  async applySource(
    source: RegistrySource,
    { force = false, compare = false, merge = false }: ApplyOptions = {},
  ): Promise<AppliedEntry[] | undefined> {
    if (!compare && !merge && (await this.fileInForce.isApplied(source))) {
      await this.registry.renew();
      return undefined;
    }
    const { document, violations: formViolations, content } = await readRegistryFile(source);
    // before the other checks, so that a pod with a superseded file starts even if the file is no longer valid
    if (!force && !merge) await this.assertNotSuperseded(content);
    const readStored = async () => StoredEntries.read(await this.revision(), document, this.select);
    const before = await readStored();
    const violations = await checkDocument(document, formViolations, before, this.settingsClasses);
    if (violations.length > 0) throw new RegistryFileError(violations);
    const warnings = warningsOf(document, before);
    // a file with a warning is parsed at each start, so that the warning is repeated
    const recognition = warnings.length > 0 ? undefined : this.fileInForce.recognitionOf(source);
    let stored: StoredEntries | undefined = before;
    return CONCURRENT_FILE.run(async () => {
      const current = stored ?? (await readStored());
      stored = undefined; // a retry must read what the other process has written
      const { listed, groups } = await rowsOf(document, current, await this.knownGroups());
      const state = { ...content, passwordGroups: groups, recognition };
      const applied = await this.writer.write({ document, listed, stored: current, state, force, merge });
      for (const warning of warnings) this.logger.warn(`the registry file: ${warning}`);
      await this.registry.renew();
      return applied;
    });
  }

  /** The revision of the registry, against which a file is checked. */
  revision(): Promise<number> {
    return readRevision(this.database);
  }

  /** The registry as YAML, without secrets. */
  export(): Promise<string> {
    return exportRegistry(this.select);
  }

  private async knownGroups() {
    return (await latestFile((options) => this.database.read(AppliedRegistryFile, options)))?.passwordGroups ?? null;
  }

  private async assertNotSuperseded(content: FileContent): Promise<void> {
    const superseding = await supersedingFile((options) => this.database.read(AppliedRegistryFile, options), content);
    if (superseding) throw new SupersededRegistryFileError(superseding);
  }
}
