import { Injectable, Logger } from '@nestjs/common';
import { stringify } from 'yaml';
import { party } from '../../audit/audit.js';
import { Database } from '../../platform/database/database.js';
import { isDuplicate, isRolledBack } from '../../platform/database/database-errors.js';
import { RetryPolicy } from '../../platform/database/retry-policy.js';
import type { EntriesOf } from '../entry.js';
import { entryViolations } from '../entry-checks.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { ProofIssuers } from '../proof-issuers.js';
import { Registry } from '../registry.js';
import { currentRevision, readRevision } from '../registry-revision.js';
import { RegistryTransactions } from '../registry-transactions.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { pagesOf, type Reads } from '../row-pages.js';
import { StoredEntries } from '../stored-entries.js';
import { AppliedFiles, contentOf, type FileContent } from './applied-files.js';
import { validateDocument } from './registry-document.js';
import { RegistrySource } from './registry-source.js';
import {
  type AppliedEntry,
  compareRows,
  type ListedRows,
  rowsOf,
  StaleSecretsError,
  usesStaleSecrets,
} from './row-changes.js';
import { RegistryFileError } from './yaml-document.js';

const MAX_NAMED_PATHS = 20;

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

interface ParsedFile {
  content: FileContent;
  entriesOf: EntriesOf;
  violations: string[];
}

@Injectable()
export class RegistryFile {
  private readonly logger = new Logger(RegistryFile.name);

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly appliedFiles: AppliedFiles,
    private readonly transactions: RegistryTransactions,
    private readonly settingsClasses: GrantSettingsClasses,
  ) {}

  /**
   * Removing an entry from the file does not delete the entry, but lets the admin API change it.
   *
   * @throws RegistryFileError with every violation, in which case nothing is changed
   * @throws SupersededRegistryFileError
   */
  async apply(path: string, options: ApplyOptions = {}): Promise<AppliedEntry[]> {
    return (await this.applySource(await RegistrySource.read(path), options)) ?? this.entriesInForce();
  }

  /** `undefined` if the file is in force, so that nothing had to be compared. */
  async applySource(source: RegistrySource, options: ApplyOptions = {}): Promise<AppliedEntry[] | undefined> {
    const { force, compare, merge } = options;
    if (!compare && !merge && (await this.appliedFiles.isInForce(source))) {
      await this.registry.renew();
      return undefined;
    }
    const plain = await source.parse();
    const content = await contentOf(source, plain.revision);
    // before the other checks, so that a pod with a superseded file starts even if the file is no longer valid
    if (!force && !merge) await this.appliedFiles.assertNotSuperseded(content, this.database);
    const [entriesOf, violations] = await validateDocument(plain, source.secrets);
    const file = { content, entriesOf, violations };
    return CONCURRENT_FILE.run(() => this.applyParsed(file, options));
  }

  async revision(): Promise<number> {
    return (await readRevision(this.database)).revision;
  }

  /** YAML (protocol §8.1), without secrets: only their hashes are stored. */
  async export(): Promise<string> {
    const lists: Record<string, object[]> = {};
    for (const { list, entity, key, toEntry } of REGISTRY_RESOURCES) {
      const entries: object[] = [];
      lists[list] = entries;
      for await (const rows of pagesOf(this.database, entity, key.column))
        for (const row of rows) entries.push(toEntry(row));
    }
    return stringify(lists, { aliasDuplicateObjects: false });
  }

  private async entriesInForce(): Promise<AppliedEntry[]> {
    const entries: AppliedEntry[] = [];
    for (const { entity, noun: kind, fileKey } of REGISTRY_RESOURCES) {
      for await (const rows of pagesOf(this.database, entity, fileKey.column, { ownedByFile: true }))
        for (const row of rows) entries.push({ kind, id: String(row[fileKey.column]), outcome: 'unchanged' });
    }
    return entries;
  }

  /** @throws StaleSecretsError if another process has changed secrets since they were hashed */
  private async applyParsed(file: ParsedFile, { force, merge = false }: ApplyOptions): Promise<AppliedEntry[]> {
    const { content, entriesOf } = file;
    const before = await this.revision();
    const stored = await StoredEntries.read(this.database, entriesOf, true);
    await this.assertValid(file, stored, this.database);
    const known = (await this.appliedFiles.latest(this.database))?.passwordGroups ?? null;
    const { listed, groups } = await rowsOf(entriesOf, stored, known);
    let applied: AppliedEntry[] = [];
    let warnings: string[] = [];
    await this.transactions.run(party('service'), async (manager) => {
      if (!force && !merge) await this.appliedFiles.assertNotSuperseded(content, manager);
      const revision = await currentRevision(manager);
      const present = revision === before ? stored : await StoredEntries.read(manager, entriesOf, true);
      if (revision !== before) await this.assertValid(file, present, manager);
      if (usesStaleSecrets(listed, stored, present)) throw new StaleSecretsError();
      if (merge) assertNotOwnedByFile(listed, present);
      const { entries, changes } = await compareRows(listed, present, merge);
      applied = entries;
      warnings = warningsOf(entriesOf, present);
      // a file with warnings is checked at each start, so that the warnings are repeated
      const registryRevision = warnings.length > 0 ? null : revision + (changes.length > 0 ? 1 : 0);
      if (!merge) await this.appliedFiles.remember(manager, { ...content, passwordGroups: groups, registryRevision });
      return changes;
    });
    for (const warning of warnings) this.logger.warn(`the registry file: ${warning}`);
    return applied;
  }

  /** @throws RegistryFileError */
  private async assertValid({ entriesOf, violations }: ParsedFile, stored: StoredEntries, reads: Reads): Promise<void> {
    const found = await entryViolations({
      entriesOf,
      settingsClasses: this.settingsClasses,
      proofIssuers: await ProofIssuers.read(reads, entriesOf, this.settingsClasses),
      isStored: (resource, key) => stored.rowWithKey(resource, key) !== undefined,
      invalidPaths: new Set(violations.map((violation) => violation.replace(/: .*$/s, ''))),
    });
    const all = [...violations, ...found];
    if (all.length > 0) throw new RegistryFileError(all);
  }
}

/** @throws RegistryFileError with a violation for each listed entry that belongs to the registry file of the pods */
function assertNotOwnedByFile(listed: ListedRows[], stored: StoredEntries): void {
  const owned = listed.flatMap(({ resource, rows }) =>
    rows
      .map((row) => String(row[resource.fileKey.column]))
      .filter((key) => stored.rowWithKey(resource, key)?.ownedByFile)
      .map((key) => `${resource.noun} ${key}: belongs to the registry file; change it there`),
  );
  if (owned.length > 0) throw new RegistryFileError(owned);
}

/** Warnings about a file that is accepted. A warning has paths but no values, because a value may be a secret. */
function warningsOf(entriesOf: EntriesOf, stored: StoredEntries): string[] {
  return REGISTRY_RESOURCES.flatMap((resource) => {
    const { warning } = resource;
    const causes = entriesOf(resource).filter(([, entry]) => warning?.appliesTo(entry, stored.rowOf(resource, entry)));
    if (!warning || causes.length === 0) return [];
    const more = causes.length - MAX_NAMED_PATHS;
    const paths = causes.slice(0, MAX_NAMED_PATHS).map(([path]) => path);
    return [`${paths.join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${warning.text}`];
  });
}
