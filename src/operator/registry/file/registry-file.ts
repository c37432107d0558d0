import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { party } from '../../../platform/audit/audit.js';
import { Database } from '../../../platform/database/database.js';
import { AGENTS } from '../../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf, nounOf } from '../../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../../registry/entries/entry-kinds.js';
import { ORGANIZATIONS } from '../../../registry/entries/organization.entry.js';
import { RegistryRevision } from '../../../registry/registry-revision.entity.js';
import { pagesOf } from '../../../registry/row-pages.js';
import { type Entry, fieldPath, keyInFile, type ListedEntries } from '../entry.js';
import { changeOf, type EntryChange } from '../entry-change.js';
import { EntryChecks, hasKeys, hasSecret } from '../entry-checks.js';
import { RegistryTransactions } from '../registry-transactions.js';
import { deletedKeys, leavingOrganizations, StoredEntries, whenFree } from '../stored-entries.js';
import { ListedSecrets, passwordsHash } from './listed-secrets.js';
import { type ParsedRegistryFile, parseRegistryFile } from './registry-file-parser.js';
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
    private readonly checks: EntryChecks,
  ) {}

  /**
   * Creates and changes the listed entries in one transaction. Writes nothing if nothing changes.
   *
   * @param prunes deletes the clients, agents and resource servers that an earlier file brought and this one does not
   *   have, and suspends such organizations
   * @param isDryRun writes nothing at all
   * @throws RegistryFileError with every violation, in which case nothing is changed
   */
  async apply(path: string, { isDryRun = false, prunes = false } = {}): Promise<AppliedEntry[]> {
    const file = await parseRegistryFile(path);
    const secrets = new ListedSecrets();
    // the slow hashes are computed before the transaction, in which other writers wait
    let plan = await this.planOf(file, secrets, this.database.manager, prunes);
    const isNewHash = plan.newHash !== '' && plan.newHash !== plan.storedHash;
    if (!isDryRun && (plan.changes.length > 0 || isNewHash)) {
      await this.transactions.run(party('service'), async (manager) => {
        plan = await this.planOf(file, secrets, manager, prunes);
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
    const { entries, unreadable } = await parseRegistryFile(path);
    const violations = this.checks.violationsWithoutDatabase(entries, true);
    if (violations.length > 0) throw new RegistryFileError(violations);
    const missing = this.checks.violationsWithoutDatabase(entries, false);
    return [...unreadable.map((field) => `${field}: the file cannot be read here`), ...missing];
  }

  private async planOf(
    file: ParsedRegistryFile,
    secrets: ListedSecrets,
    manager: EntityManager,
    prunes: boolean,
  ): Promise<Plan> {
    const leaving = await leavingOrganizations(manager);
    const entries = file.entries.without(leaving);
    const stored = await StoredEntries.read(manager, entries);
    await this.assertValid({ ...file, entries }, stored, manager);
    const storedHash = (await manager.findOneBy(RegistryRevision, { id: 1 }))?.passwordsHash;
    const storedPassword = (agent: Entry) => stored.rowOf(AGENTS, agent)?.passwordHash;
    const arePasswordsUnchanged = storedHash === (await passwordsHash(entries, storedPassword));
    const columnsByEntry = new Map<Entry, ObjectLiteral>();
    const plan: Plan = { entries: [], changes: [], warnings: warningsOf(entries, stored), storedHash, newHash: '' };
    for (const kind of ENTRY_KINDS) {
      const isSecretKnown = arePasswordsUnchanged && kind === AGENTS;
      const addColumns = async ({ entry }: { entry: Entry }) => {
        const row = stored.rowOf(kind, entry);
        const secret = isSecretKnown ? {} : await secrets.columnsOf(kind, entry, row);
        const without = row ? {} : kind.secret?.removed;
        const id = kind === AGENTS ? { id: stored.agentId(String(entry.email)) } : stored.referenceColumns(kind, entry);
        const columns = { ...without, ...kind.toColumns(entry, row), ...id, ...secret };
        columnsByEntry.set(entry, { ...columns, fromFile: true });
      };
      await Promise.all(entries.of(kind).map(addColumns));
      for (const { entry } of entries.of(kind)) {
        const change = changeOf(kind, columnsByEntry.get(entry) ?? {}, stored.rowOf(kind, entry));
        const outcome = change?.change ?? 'unchanged';
        plan.entries.push({ kind: nounOf(kind), id: String(keyInFile(kind, entry)), outcome });
        if (change) plan.changes.push(change);
      }
    }
    const newPassword = (agent: Entry) => columnsByEntry.get(agent)?.passwordHash ?? storedPassword(agent);
    plan.newHash = await passwordsHash(entries, newPassword);
    const unlisted = await unlistedRows(manager, entries, leaving);
    const leftOut = file.entries.of(ORGANIZATIONS).flatMap(({ path, entry }) => (leaving.has(entry.id) ? [path] : []));
    if (leftOut.length > 0)
      plan.warnings.push(`${firstNames(leftOut)}: being off-boarded, so the entries are left out`);
    if (prunes) {
      for (const { kind, row } of unlisted) planRemoval(plan, kind, row);
    } else if (unlisted.length > 0) {
      const names = unlisted.map(({ kind, row }) => `${nounOf(kind)} ${row[kind.key.column]}`);
      plan.warnings.push(
        `these entries of an earlier file are no longer in it, and were not removed: ${firstNames(names)}`,
      );
    }
    return plan;
  }

  /** @throws RegistryFileError */
  private async assertValid(
    { entries, unreadable }: ParsedRegistryFile,
    stored: StoredEntries,
    manager: EntityManager,
  ): Promise<void> {
    const isSecretStored = (kind: EntryKind, entry: Entry) => hasSecret(kind, stored.rowOf(kind, entry));
    const violations = [
      ...unreadable.map((field) => `${field}: the file cannot be read, or is not UTF-8`),
      ...(await deletedViolations(manager, entries)),
      ...(await this.checks.violations(manager, entries, stored, isSecretStored)),
    ];
    if (violations.length > 0) throw new RegistryFileError(violations);
  }
}

/** Deletes an entry, or suspends an organization: it has customers, whom only an operator may erase. */
function planRemoval({ entries, changes }: Plan, kind: EntryKind, row: ObjectLiteral): void {
  const key = String(row[kind.key.column]);
  const removed = { kind: nounOf(kind), id: String(row[fileKeyOf(kind).column]) };
  if (kind === ORGANIZATIONS) {
    changes.push({ kind, key, change: 'changed', columns: { suspended: true }, fields: ['suspended'] });
    entries.push({ ...removed, outcome: 'suspended' });
  } else {
    changes.push({ kind, key, change: 'deleted' });
    entries.push({ ...removed, outcome: 'deleted' });
  }
}

/** Entries with the id of a deleted one of which something is left. */
async function deletedViolations(manager: EntityManager, entries: ListedEntries): Promise<string[]> {
  const violations: string[] = [];
  for (const kind of ENTRY_KINDS) {
    const deleted = await deletedKeys(manager, kind);
    const { field } = kind.key;
    for (const { path, entry } of entries.of(kind))
      if (deleted.has(entry[field])) violations.push(`${fieldPath(path, field)}: was deleted, and ${whenFree(kind)}`);
  }
  return violations;
}

/** The rows that an earlier file brought and this one does not have, except suspended organizations. */
async function unlistedRows(manager: EntityManager, entries: ListedEntries, leaving: Set<unknown>) {
  const unlisted: { kind: EntryKind; row: ObjectLiteral }[] = [];
  for (const kind of ENTRY_KINDS) {
    const { column } = fileKeyOf(kind);
    const listed = new Set(entries.of(kind).map(({ entry }) => keyInFile(kind, entry)));
    const isOwned = kind === CLIENTS || kind === AGENTS;
    const select = { [column]: true, [kind.key.column]: true, ...(isOwned && { organizationId: true }) };
    const filter = { fromFile: true, ...(kind === ORGANIZATIONS && { suspended: false }) };
    for await (const rows of pagesOf(manager, kind.entity, column, filter, { select }))
      for (const row of rows)
        if (!listed.has(row[column]) && !leaving.has(row.organizationId)) unlisted.push({ kind, row });
  }
  return unlisted;
}

/** Warnings about a file that is accepted. A warning has paths but no values, because a value may be a secret. */
function warningsOf(entries: ListedEntries, stored: StoredEntries): string[] {
  const admittingPaths = entries
    .of(ORGANIZATIONS)
    .filter(({ entry }) => entry.public_clients === undefined)
    .filter(({ entry }) => stored.rowOf(ORGANIZATIONS, entry)?.publicClients === 'all')
    .map(({ path }) => path);
  const warnings: [string[], string][] = [
    [
      admittingPaths,
      'without public_clients, which admits all public clients; set it to all or to a list of client ids',
    ],
    [
      pathsWithOldSecret(entries, stored),
      'keys, and still a secret that the file does not list; a PATCH with null removes it',
    ],
  ];
  return warnings.filter(([paths]) => paths.length > 0).map(([paths, warning]) => `${firstNames(paths)}: ${warning}`);
}

/** An entry that has moved from a secret to keys. The file cannot remove a secret, because most files list none. */
function pathsWithOldSecret(entries: ListedEntries, stored: StoredEntries): string[] {
  return ENTRY_KINDS.flatMap((kind) =>
    entries
      .of(kind)
      .filter(({ entry }) => hasKeys(entry) && kind.secret && entry[kind.secret.field] === undefined)
      .filter(({ entry }) => hasSecret(kind, stored.rowOf(kind, entry)))
      .map(({ path }) => path),
  );
}

function firstNames(names: string[]): string {
  const furtherCount = names.length - MAX_NAMED_ENTRIES;
  return `${names.slice(0, MAX_NAMED_ENTRIES).join(', ')}${furtherCount > 0 ? ` and ${furtherCount} more` : ''}`;
}
