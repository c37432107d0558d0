import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { stringify } from 'yaml';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { isDuplicate, isRepeatable } from '../../platform/database/database-errors.js';
import { Agent } from '../agent.entity.js';
import { Agents } from '../agents.js';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import { ClientApplication } from '../client-application.entity.js';
import { GrantCatalogue } from '../grant-catalogue.js';
import { Organization } from '../organization.entity.js';
import { Registry } from '../registry.js';
import { RegistryRevision } from '../registry-revision.entity.js';
import { ResourceServer } from '../resource-server.entity.js';
import { rememberApplied, SupersededRegistryFileError, supersedingFile } from './applied-files.js';
import { contradictionsOf } from './check-registry.js';
import { exportedRegistry } from './export-registry.js';
import type { FileContent } from './file-content.js';
import { RegistryFileError, readRegistryFile } from './read-registry-file.js';
import { registeredIn } from './registered.js';
import type { RegistryDocument } from './registry-document.js';
import { type AppliedEntry, applyTable, isEnding, type RegistryTable, tablesOf } from './registry-tables.js';
import { warningsOf } from './registry-warnings.js';
import { unchangedShortPasswords } from './unchanged-short-passwords.js';

const ATTEMPTS = 5;

/** Applies a registry file to the database, and writes the database's registry as a file. */
@Injectable()
export class RegistryFile {
  private readonly logger = new Logger(RegistryFile.name);

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly agents: Agents,
    private readonly catalogue: GrantCatalogue,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /**
   * Brings the database to what the file lists, as one change; what it does not list stays, and is no longer the file's.
   * Applied twice, the second time changes nothing.
   *
   * @param force applies a superseded file too
   * @throws RegistryFileError naming every fault, in which case nothing is changed
   * @throws SupersededRegistryFileError
   */
  async apply(path: string, { force = false } = {}): Promise<AppliedEntry[]> {
    const { document, faults: faultsOfForm, content } = await readRegistryFile(path);
    // first of all: a pod with an old file starts, whether or not the file would still be accepted
    if (!force) await this.assertNotSuperseded(content);
    const organizations = await this.database.read(Organization);
    const faults = await this.withoutUnchangedPasswords(faultsOfForm, document);
    faults.push(
      ...contradictionsOf(document, this.catalogue, await registeredIn(this.database, organizations, document)),
    );
    if (faults.length > 0) throw new RegistryFileError(faults);
    const warnings = warningsOf(document, organizations);
    for (let attempt = 1; ; attempt++) {
      try {
        // passwords take long to hash: before the transaction, not in it
        const tables = await tablesOf(document, await this.database.read(Agent));
        const applied = await this.database.transaction((manager) => this.write(manager, tables, content, force));
        if (applied instanceof SupersededRegistryFileError) throw applied;
        for (const warning of warnings) this.logger.warn(`the registry file: ${warning}`);
        this.tell(applied);
        // again: what was issued between the first telling and the commit was issued to the old agent
        await this.agents.changed(changedAgents(applied), 'after');
        await this.registry.renew();
        return applied;
      } catch (error) {
        // another process applies its file at this moment: read again what it has written
        const { cause = error } = error as Error;
        if (attempt === ATTEMPTS || !(isDuplicate(error) || isRepeatable(cause))) throw error;
      }
    }
  }

  /** Short passwords that have not changed are no faults, but warnings. */
  private async withoutUnchangedPasswords(faults: string[], document: RegistryDocument): Promise<string[]> {
    if (!faults.some((fault) => /^agents\[\d+\]\.password: /.test(fault))) return faults;
    const unchanged = await unchangedShortPasswords(document, await this.database.read(Agent));
    for (const path of unchanged) this.logger.warn(`${path}: too short; accepted because it has not changed`);
    return faults.filter((fault) => !unchanged.some((path) => fault.startsWith(`${path}: `)));
  }

  /** An agent's entry is told by its id: its email is nobody's business. */
  private tell(applied: AppliedEntry[]): void {
    for (const { kind, id, outcome, changes, row } of applied.filter((entry) => entry.outcome !== 'left')) {
      const subject = {
        kind: kind === 'resource server' ? 'resource_server' : kind,
        id: kind === 'agent' ? row.id : id,
      } as const;
      const details = { change: outcome, fields: outcome === 'changed' ? changes : [] };
      this.audit.record({
        event: 'registry.changed',
        outcome: 'success',
        actor: { kind: 'service' },
        subject,
        details,
      });
    }
  }

  /** The registry as YAML, without secrets: those are stored only as hashes. */
  async export(): Promise<string> {
    const organizations = await this.database.read(Organization);
    const clients = await this.database.read(ClientApplication);
    const servers = await this.database.read(ResourceServer);
    const agents = await this.database.read(Agent);
    return stringify(exportedRegistry(organizations, clients, servers, agents), { aliasDuplicateObjects: false });
  }

  private async assertNotSuperseded(content: FileContent): Promise<void> {
    const superseding = await supersedingFile((options) => this.database.read(AppliedRegistryFile, options), content);
    if (superseding) throw new SupersededRegistryFileError(superseding);
  }

  private async write(
    manager: EntityManager,
    tables: RegistryTable[],
    content: FileContent,
    force: boolean,
  ): Promise<AppliedEntry[] | SupersededRegistryFileError> {
    const all: AppliedEntry[] = [];
    let changed = false;
    // locks the row that the admin API locks first, too
    await manager.increment(RegistryRevision, { id: 1 }, 'revision', 0);
    const superseding = force
      ? undefined
      : await supersedingFile((options) => manager.find(AppliedRegistryFile, options), content);
    if (superseding) return new SupersededRegistryFileError(superseding);
    for (const table of tables) {
      const [applied, anyChange] = await applyTable(manager, table);
      all.push(...applied);
      changed ||= anyChange;
    }
    if (changed) await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
    await rememberApplied(manager, content, this.clock.now());
    await this.agents.changed(changedAgents(all), 'before');
    return all;
  }
}

/** The agents whose tokens must end: with a new password, in another organization, with other scopes. */
function changedAgents(applied: AppliedEntry[]): string[] {
  return applied
    .filter(({ kind, outcome, changes }) => kind === 'agent' && outcome === 'changed' && isEnding(changes))
    .map(({ row }) => row.id);
}
