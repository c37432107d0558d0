import { Injectable, Logger } from '@nestjs/common';
import { stringify } from 'yaml';
import { party } from '../../audit/audit.js';
import { Database } from '../../platform/database/database.js';
import { isDuplicate, isRolledBack } from '../../platform/database/database-errors.js';
import { RetryPolicy } from '../../platform/database/retry-policy.js';
import { EntityReader, readsIn } from '../entity-reader.js';
import { entryViolations } from '../entry-checks.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { Registry } from '../registry.js';
import { readRevision } from '../registry-revision.js';
import { currentRevision, type EntryChange, RegistryTransactions } from '../registry-transactions.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { AppliedFiles, type AppliedState, contentOf } from './applied-files.js';
import { type ListedRows, rowsOf, StaleSecretsError, StoredEntries, usesStaleSecrets } from './listed-rows.js';
import { entriesIn, type RegistryDocument, validateDocument, withSecrets } from './registry-document.js';
import { RegistrySource } from './registry-source.js';
import { type AppliedEntry, compareRows, entryChanges, writeChanges } from './row-changes.js';
import { RegistryTextError } from './yaml-document.js';

/** One warning names at most this many paths. */
const MAX_NAMED_PATHS = 20;

/** Retries when another process applies a registry file at the same time. */
const CONCURRENT_FILE = new RetryPolicy({
  attempts: 5,
  pauseMs: () => 0,
  isRetryable: (error) =>
    error instanceof StaleSecretsError || isDuplicate(error) || isRolledBack((error as Error).cause ?? error),
});

/**
 * A registry file that is rejected as a whole. Each violation has a path but no value, because a value may be a secret.
 */
export class RegistryFileError extends Error {
  constructor(readonly violations: string[]) {
    super(`the registry file is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

interface ApplyOptions {
  /** Applies the file even if it is superseded. */
  force?: boolean;
  /** Checks the file and compares it with the database even if it is in force. */
  compare?: boolean;
  /** Adds the entries as the admin API does: they do not belong to the file, and the file in force stays the same. */
  merge?: boolean;
}

/** A valid registry file whose secrets are hashed. */
interface FileToWrite {
  document: RegistryDocument;
  listed: ListedRows[];
  /** The stored entries before the transaction. */
  stored: StoredEntries;
  /** What is recorded about the file. */
  state: Omit<AppliedState, 'registryRevision'>;
  /** Whether the file causes warnings. It is then checked at each start, so that the warnings are repeated. */
  warns: boolean;
}

/** Applies a registry file to the database, and exports the registry of the database as a file. */
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
   * Reads a file without applying it.
   *
   * @param before the same file as it was read before
   * @throws RegistryFileError if the file cannot be read
   */
  async read(path: string, before?: RegistrySource): Promise<RegistrySource> {
    return RegistrySource.read(path, before).catch((error) => {
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
    return (await this.applySource(source, options)) ?? this.entriesInForce();
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
    if (!compare && !merge && (await this.appliedFiles.isInForce(source))) {
      await this.registry.renew();
      return undefined;
    }
    const plain = await source.parse().catch((error) => {
      throw error instanceof RegistryTextError ? new RegistryFileError(error.violations) : error;
    });
    const content = await contentOf(source, plain.revision);
    // before the other checks, so that a pod with a superseded file starts even if the file is no longer valid
    if (!force && !merge) await this.appliedFiles.assertNotSuperseded(content);
    const [replaced, unreadable] = withSecrets(plain, source.secrets);
    const [document, invalid] = await validateDocument(replaced);
    const readStored = async () => StoredEntries.read(await this.revision(), document, this.database);
    const before = await readStored();
    await this.assertValid(document, [...unreadable, ...invalid], before);
    const warnings = warningsOf(document, before);
    let stored: StoredEntries | undefined = before;
    return CONCURRENT_FILE.run(async () => {
      const current = stored ?? (await readStored());
      stored = undefined; // a retry must read what the other process has written
      const known = (await this.appliedFiles.latest())?.passwordGroups ?? null;
      const { listed, groups } = await rowsOf(document, current, known);
      const state = { ...content, passwordGroups: groups };
      const file = { document, listed, stored: current, state, warns: warnings.length > 0 };
      const applied = await this.write(file, force, merge);
      for (const warning of warnings) this.logger.warn(`the registry file: ${warning}`);
      return applied;
    });
  }

  /** The revision of the registry, against which a file is checked. */
  revision(): Promise<number> {
    return readRevision(this.database);
  }

  /** The registry of the database as YAML (protocol §8.1), without secrets: only their hashes are stored. */
  async export(): Promise<string> {
    const lists: Record<string, object[]> = {};
    for (const { list, entity, key, toEntry } of REGISTRY_RESOURCES) {
      const entries: object[] = [];
      lists[list] = entries;
      for await (const rows of new EntityReader(entity, key.column).inPages(this.database))
        for (const row of rows) entries.push(toEntry(row));
    }
    return stringify(lists, { aliasDuplicateObjects: false });
  }

  /** The entries that belong to the registry file, in the form of the result of applying it again. */
  private async entriesInForce(): Promise<AppliedEntry[]> {
    const entries: AppliedEntry[] = [];
    for (const { entity, noun: kind, fileKey } of REGISTRY_RESOURCES) {
      for await (const rows of new EntityReader(entity, fileKey.column).inPages(this.database, 'ownedByFile'))
        for (const row of rows) entries.push({ kind, id: String(row[fileKey.column]), outcome: 'unchanged' });
    }
    return entries;
  }

  /** @throws RegistryFileError with these violations and those of the checks against the database */
  private async assertValid(document: RegistryDocument, found: string[], stored: StoredEntries): Promise<void> {
    const checked = await entryViolations({
      entriesOf: (resource) => entriesIn(document, resource),
      settingsClasses: this.settingsClasses,
      isStored: (resource, key) => stored.rowWithKey(resource, key) !== undefined,
      invalidPaths: new Set(found.map((violation) => violation.replace(/: .*$/s, ''))),
    });
    const violations = [...found, ...checked];
    if (violations.length > 0) throw new RegistryFileError(violations);
  }

  /**
   * Writes a file in one transaction.
   *
   * @throws SupersededRegistryFileError
   * @throws StaleSecretsError if another process has changed secrets that the file lists, in which case nothing is
   *   changed
   */
  private async write(file: FileToWrite, force: boolean, merge: boolean): Promise<AppliedEntry[]> {
    const { document, listed, stored, state, warns } = file;
    let applied: AppliedEntry[] = [];
    await this.transactions.run(party('service'), async (manager): Promise<EntryChange[]> => {
      if (!force && !merge) await this.appliedFiles.assertNotSuperseded(state, manager);
      const before = await currentRevision(manager);
      const present =
        before === stored.revision ? stored : await StoredEntries.read(before, document, readsIn(manager));
      if (usesStaleSecrets(listed, stored, present)) throw new StaleSecretsError();
      if (merge) assertNotOwnedByFile(listed, present);
      applied = [];
      const changes: EntryChange[] = [];
      for (const rows of listed) {
        const compared = await compareRows(rows, present, merge);
        await writeChanges(manager, compared);
        for (const entry of compared.entries) applied.push(entry);
        for (const change of entryChanges(compared)) changes.push(change);
      }
      const after = changes.length > 0 ? before + 1 : before;
      if (!merge) await this.appliedFiles.remember(manager, { ...state, registryRevision: warns ? null : after });
      await this.transactions.endTokens(changes, manager);
      return changes;
    });
    return applied;
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
function warningsOf(document: RegistryDocument, stored: StoredEntries): string[] {
  return REGISTRY_RESOURCES.flatMap((resource) => {
    const { warning } = resource;
    const causes = entriesIn(document, resource).filter(([, entry]) =>
      warning?.appliesTo(entry, stored.rowOf(resource, entry)),
    );
    if (!warning || causes.length === 0) return [];
    const more = causes.length - MAX_NAMED_PATHS;
    const paths = causes.slice(0, MAX_NAMED_PATHS).map(([path]) => path);
    return [`${paths.join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${warning.text}`];
  });
}
