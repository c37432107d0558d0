import { Injectable, Logger } from '@nestjs/common';
import { type EntityManager, IsNull, Not, type ObjectLiteral } from 'typeorm';
import { party } from '../../audit/audit.js';
import { Database } from '../../platform/database/database.js';
import { type EntriesOf, type Entry, fieldPath } from '../entry.js';
import { changeOf } from '../entry-change.js';
import { entryViolations, pathsOf } from '../entry-checks.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { ProofIssuers } from '../proof-issuers.js';
import { RegistryRevision } from '../registry-revision.entity.js';
import { type EntryChange, RegistryTransactions } from '../registry-transactions.js';
import { organizationResource } from '../resources/organization.resource.js';
import { fileKeyOf, type RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { pagesOf } from '../row-pages.js';
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
    const violations = await this.violationsOf(document, proofIssuers, () => true);
    if (violations.length > 0) throw new RegistryFileError(violations);
    const missing = await this.violationsOf(document, proofIssuers, () => false);
    return [...document.unreadable.map((field) => `${field}: the file cannot be read here`), ...missing];
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
    const areUnchanged = storedHash === (await passwordsHash(entriesOf, (...entry) => stored.rowOf(...entry)));
    const rows = new Map<Entry, ObjectLiteral>();
    const addRow = async (resource: RegistryResource, entry: Entry) => {
      const columns = await secrets.columnsOf(resource, entry, stored.rowOf(resource, entry), areUnchanged);
      rows.set(entry, { ...resource.toRow(entry, columns), fromFile: true });
    };
    const entries: AppliedEntry[] = [];
    const changes: EntryChange[] = [];
    for (const resource of REGISTRY_RESOURCES) {
      const listed = entriesOf(resource).map(([, entry]) => entry);
      await Promise.all(listed.map((entry) => addRow(resource, entry)));
      for (const entry of listed) {
        const row = rows.get(entry) ?? {};
        const change = changeOf(resource, row, stored.rowOf(resource, entry));
        const id = String(row[resource.fileKey.column]);
        entries.push({ kind: resource.noun, id, outcome: change?.change ?? 'unchanged' });
        if (change) changes.push(change);
      }
    }
    const remaining: string[] = [];
    for (const [resource, row] of await unlistedRows(manager, entriesOf)) {
      const { noun, fileKey } = resource;
      const key = String(row[resource.key.column]);
      // an organization has customers, whom only an operator may erase
      const isSuspended = resource === organizationResource;
      if (isSuspended && row.suspended) continue;
      if (!prunes) {
        remaining.push(`${noun} ${key}`);
        continue;
      }
      changes.push(isSuspended ? suspensionOf(key) : { resource, key, change: 'deleted', endsTokens: true });
      entries.push({ kind: noun, id: String(row[fileKey.column]), outcome: isSuspended ? 'suspended' : 'deleted' });
    }
    const warnings = warningsOf(entriesOf, stored);
    if (remaining.length > 0)
      warnings.push(`these entries of an earlier file are no longer in it, and were not removed: ${named(remaining)}`);
    const newHash = await passwordsHash(entriesOf, (_, entry) => rows.get(entry));
    return { entries, changes, warnings, storedHash, newHash };
  }

  /** @throws RegistryFileError */
  private async assertValid(document: RegistryDocument, stored: StoredEntries, manager: EntityManager): Promise<void> {
    const { entriesOf, unreadable } = document;
    const proofIssuers = await ProofIssuers.read(manager, entriesOf, this.settingsClasses);
    const isStored = (resource: RegistryResource, key: string) => stored.rowWithKey(resource, key) !== undefined;
    const found = await this.violationsOf(document, proofIssuers, isStored);
    const ofFiles = unreadable.map((field) => `${field}: the file cannot be read, or is not UTF-8`);
    const all = [...ofFiles, ...(await deletedViolations(manager, entriesOf)), ...found];
    if (all.length > 0) throw new RegistryFileError(all);
  }

  private async violationsOf(
    { entriesOf, violations }: RegistryDocument,
    proofIssuers: ProofIssuers,
    isStored: (resource: RegistryResource, key: string) => boolean,
  ): Promise<string[]> {
    const { settingsClasses } = this;
    const invalidPaths = pathsOf(violations);
    const found = entryViolations({ entriesOf, settingsClasses, proofIssuers, isStored, invalidPaths });
    return [...violations, ...(await found)];
  }
}

function suspensionOf(key: string): EntryChange {
  const columns = { suspended: true };
  return { resource: organizationResource, key, change: 'changed', columns, fields: ['suspended'] };
}

/** Entries with the id of a deleted one of which something is left. */
async function deletedViolations(manager: EntityManager, entriesOf: EntriesOf): Promise<string[]> {
  const violations: string[] = [];
  for (const resource of REGISTRY_RESOURCES) {
    const { entity, key, retainsKey } = resource;
    if (retainsKey === undefined) continue;
    const where: object = { deletedAt: Not(IsNull()) };
    const rows = await manager.find(entity, { where, withDeleted: true });
    const deleted = new Set(rows.map((row) => row[key.column]));
    for (const [path, entry] of entriesOf(resource))
      if (deleted.has(entry[key.field]))
        violations.push(`${fieldPath(path, key.field)}: was deleted, and ${retainsKey}`);
  }
  return violations;
}

/** The rows that an earlier file brought and this one does not have. */
async function unlistedRows(
  manager: EntityManager,
  entriesOf: EntriesOf,
): Promise<[RegistryResource, ObjectLiteral][]> {
  const unlisted: [RegistryResource, ObjectLiteral][] = [];
  for (const resource of REGISTRY_RESOURCES) {
    const { column } = resource.fileKey;
    const listed = new Set(entriesOf(resource).map(([, entry]) => fileKeyOf(resource, entry)));
    for await (const rows of pagesOf(manager, resource.entity, column, { fromFile: true }))
      for (const row of rows) if (!listed.has(row[column])) unlisted.push([resource, row]);
  }
  return unlisted;
}

/** Warnings about a file that is accepted. A warning has paths but no values, because a value may be a secret. */
function warningsOf(entriesOf: EntriesOf, stored: StoredEntries): string[] {
  return REGISTRY_RESOURCES.flatMap((resource) => {
    const { warning } = resource;
    const causes = entriesOf(resource).filter(([, entry]) => warning?.appliesTo(entry, stored.rowOf(resource, entry)));
    if (!warning || causes.length === 0) return [];
    return [`${named(causes.map(([path]) => path))}: ${warning.text}`];
  });
}

function named(names: string[]): string {
  const more = names.length - MAX_NAMED_ENTRIES;
  return `${names.slice(0, MAX_NAMED_ENTRIES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
