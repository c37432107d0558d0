import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { party } from '../../../platform/audit/audit.js';
import { Database } from '../../../platform/database/database.js';
import { AGENTS } from '../../../registry/entries/agent.entry.js';
import { type EntryKind, fileKeyOf, nounOf } from '../../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../../registry/entries/organization.entry.js';
import { GrantSettingsClasses } from '../../../registry/grant-settings-classes.js';
import { RegistryRevision } from '../../../registry/registry-revision.entity.js';
import { pagesOf } from '../../../registry/row-pages.js';
import { type EntriesOf, type Entry, fieldPath, keyInFile } from '../entry.js';
import { changeOf, type EntryChange } from '../entry-change.js';
import { type CheckedEntries, deletedKeys, entryViolations, whenFree } from '../entry-checks.js';
import { ProofIssuers } from '../proof-issuers.js';
import { RegistryTransactions } from '../registry-transactions.js';
import { StoredEntries } from '../stored-entries.js';
import { ListedSecrets, passwordsHash } from './listed-secrets.js';
import { type RegistryDocument, readRegistryDocument } from './registry-document.js';
import { RegistryFileError } from './yaml-document.js';

const MAX_NAMED_ENTRIES = 20;

export interface AppliedEntry {
  kind: string;
  id: string;
  outcome: 'created' | 'changed' | 'deleted' | 'suspended' | 'unchanged';
}

/** What the application of a file changes. */
interface Plan {
  entries: AppliedEntry[];
  changes: EntryChange[];
  warnings: string[];
  /** The hash of all passwords (listed-secrets.ts) now, and after the changes. */
  storedHash: string | undefined;
  newHash: string;
}

@Injectable()
export class RegistryFile {
  private readonly logger = new Logger(RegistryFile.name);

  constructor(
    private readonly database: Database,
    private readonly transactions: RegistryTransactions,
    private readonly settingsClasses: GrantSettingsClasses,
  ) {}

  /**
   * Creates and changes the listed entries in one transaction. Writes nothing if nothing changes.
   *
   * @param prunes deletes the clients, agents and resource servers that an earlier file brought and this one does not have,
   *   and suspends such organizations
   * @param isDryRun writes nothing at all
   * @throws RegistryFileError with every violation, in which case nothing is changed
   */
  async apply(path: string, { isDryRun = false, prunes = false } = {}): Promise<AppliedEntry[]> {
    const document = await readRegistryDocument(path);
    const secrets = new ListedSecrets();
    // the slow hashes are computed before the transaction, in which other writers wait
    let plan = await this.planOf(document, secrets, this.database.manager, prunes);
    const isNewHash = plan.newHash !== '' && plan.newHash !== plan.storedHash;
    if (!isDryRun && (plan.changes.length > 0 || isNewHash)) {
      await this.transactions.run(party('service'), async (manager) => {
        plan = await this.planOf(document, secrets, manager, prunes);
        if (plan.newHash !== '') await manager.update(RegistryRevision, { id: 1 }, { passwordsHash: plan.newHash });
        return plan.changes;
      });
    }
    for (const warning of plan.warnings) this.logger.warn(`the registry file: ${warning}`);
    return plan.entries;
  }

  /**
   * Checks a file without a database.
   *
   * @returns what the database has to have, so that the file can be applied
   * @throws RegistryFileError with every violation
   */
  async check(path: string): Promise<string[]> {
    const document = await readRegistryDocument(path);
    const proofIssuers = ProofIssuers.of(document.entriesOf, this.settingsClasses);
    const violationsIf = (isStored: boolean) =>
      this.violationsOf(document, { proofIssuers, isStored: () => isStored, hasOrganization: () => isStored });
    const violations = violationsIf(true);
    if (violations.length > 0) throw new RegistryFileError(violations);
    return [...document.unreadable.map((field) => `${field}: the file cannot be read here`), ...violationsIf(false)];
  }

  private async planOf(
    document: RegistryDocument,
    secrets: ListedSecrets,
    manager: EntityManager,
    prunes: boolean,
  ): Promise<Plan> {
    const { entriesOf } = document;
    const stored = await StoredEntries.read(manager, entriesOf);
    await this.assertValid(document, stored, manager);
    const [revision] = await manager.find(RegistryRevision, { where: { id: 1 } });
    const storedHash = revision?.passwordsHash;
    const storedPassword = (agent: Entry) => stored.rowOf(AGENTS, agent)?.passwordHash;
    const arePasswordsUnchanged = storedHash === (await passwordsHash(entriesOf, storedPassword));
    const rows = new Map<Entry, ObjectLiteral>();
    const addRow = async (kind: EntryKind, entry: Entry) => {
      const row = stored.rowOf(kind, entry);
      const isKnown = arePasswordsUnchanged && kind === AGENTS;
      const secret = isKnown ? {} : await secrets.columnsOf(kind, entry, row);
      rows.set(entry, { ...kind.toColumns(entry, row), ...secret, fromFile: true });
    };
    const entries: AppliedEntry[] = [];
    const changes: EntryChange[] = [];
    for (const kind of ENTRY_KINDS) {
      const listed = entriesOf(kind).map(([, entry]) => entry);
      await Promise.all(listed.map((entry) => addRow(kind, entry)));
      for (const entry of listed) {
        const change = changeOf(kind, rows.get(entry) ?? {}, stored.rowOf(kind, entry));
        entries.push({ kind: nounOf(kind), id: String(keyInFile(kind, entry)), outcome: outcomeOf(change) });
        if (change) changes.push(change);
      }
    }
    const remaining: string[] = [];
    for (const [kind, row] of await unlistedRows(manager, entriesOf)) {
      const [noun, key] = [nounOf(kind), String(row[kind.key.column])];
      // an organization has customers, whom only an operator may erase
      const isSuspended = kind === ORGANIZATIONS;
      if (isSuspended && row.suspended) continue;
      if (!prunes) {
        remaining.push(`${noun} ${key}`);
        continue;
      }
      changes.push(isSuspended ? suspensionOf(key) : { kind, key, change: 'deleted' });
      const outcome = isSuspended ? 'suspended' : 'deleted';
      entries.push({ kind: noun, id: String(row[fileKeyOf(kind).column]), outcome });
    }
    const warnings = warningsOf(entriesOf, stored);
    if (remaining.length > 0)
      warnings.push(`these entries of an earlier file are no longer in it, and were not removed: ${named(remaining)}`);
    const newPassword = (agent: Entry) => rows.get(agent)?.passwordHash ?? storedPassword(agent);
    return { entries, changes, warnings, storedHash, newHash: await passwordsHash(entriesOf, newPassword) };
  }

  /** @throws RegistryFileError */
  private async assertValid(document: RegistryDocument, stored: StoredEntries, manager: EntityManager): Promise<void> {
    const { entriesOf, unreadable } = document;
    const violations = [
      ...unreadable.map((field) => `${field}: the file cannot be read, or is not UTF-8`),
      ...(await deletedViolations(manager, entriesOf)),
      ...this.violationsOf(document, {
        proofIssuers: await ProofIssuers.read(manager, entriesOf, this.settingsClasses),
        isStored: (kind, entry) => stored.rowOf(kind, entry) !== undefined,
        hasOrganization: (id) => stored.hasOrganization(id),
      }),
    ];
    if (violations.length > 0) throw new RegistryFileError(violations);
  }

  private violationsOf(
    { entriesOf, violations }: RegistryDocument,
    known: Pick<CheckedEntries, 'proofIssuers' | 'isStored' | 'hasOrganization'>,
  ): string[] {
    return entryViolations({ ...known, entriesOf, violations, settingsClasses: this.settingsClasses });
  }
}

function outcomeOf(change: EntryChange | undefined): AppliedEntry['outcome'] {
  return change?.change ?? 'unchanged';
}

function suspensionOf(key: string): EntryChange {
  return { kind: ORGANIZATIONS, key, change: 'changed', columns: { suspended: true }, fields: ['suspended'] };
}

/** Entries with the id of a deleted one of which something is left. */
async function deletedViolations(manager: EntityManager, entriesOf: EntriesOf): Promise<string[]> {
  const violations: string[] = [];
  for (const kind of ENTRY_KINDS) {
    const deleted = await deletedKeys(manager, kind);
    const { field } = kind.key;
    for (const [path, entry] of entriesOf(kind))
      if (deleted.has(entry[field])) violations.push(`${fieldPath(path, field)}: was deleted, and ${whenFree(kind)}`);
  }
  return violations;
}

/** The rows that an earlier file brought and this one does not have. */
async function unlistedRows(manager: EntityManager, entriesOf: EntriesOf): Promise<[EntryKind, ObjectLiteral][]> {
  const unlisted: [EntryKind, ObjectLiteral][] = [];
  for (const kind of ENTRY_KINDS) {
    const { column } = fileKeyOf(kind);
    const listed = new Set(entriesOf(kind).map(([, entry]) => keyInFile(kind, entry)));
    const select = { [column]: true, [kind.key.column]: true, ...(kind === ORGANIZATIONS && { suspended: true }) };
    for await (const rows of pagesOf(manager, kind.entity, column, { fromFile: true }, { select }))
      for (const row of rows) if (!listed.has(row[column])) unlisted.push([kind, row]);
  }
  return unlisted;
}

/** Warnings about a file that is accepted. A warning has paths but no values, because a value may be a secret. */
function warningsOf(entriesOf: EntriesOf, stored: StoredEntries): string[] {
  const admitting = entriesOf(ORGANIZATIONS).filter(
    ([, entry]) => entry.public_clients === undefined && stored.rowOf(ORGANIZATIONS, entry)?.publicClients === 'all',
  );
  if (admitting.length === 0) return [];
  const paths = named(admitting.map(([path]) => path));
  return [
    `${paths}: without public_clients, which admits all public clients; set it to all or to a list of client ids`,
  ];
}

function named(names: string[]): string {
  const more = names.length - MAX_NAMED_ENTRIES;
  return `${names.slice(0, MAX_NAMED_ENTRIES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
