import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource, EntityManager, EntityTarget, ObjectLiteral } from 'typeorm';
import { stringify } from 'yaml';
import { Database } from '../../platform/database/database.js';
import { isDuplicate, isRepeatable } from '../../platform/database/database-errors.js';
import { Agent } from '../agent.entity.js';
import { ClientApplication } from '../client-application.entity.js';
import { GrantCatalogue } from '../grant-catalogue.js';
import { Organization } from '../organization.entity.js';
import { Registry } from '../registry.js';
import { RegistryRevision } from '../registry-revision.entity.js';
import { ResourceServer } from '../resource-server.entity.js';
import { contradictionsOf } from './check-registry.js';
import { exportedRegistry } from './export-registry.js';
import { RegistryFileError, readRegistryFile } from './read-registry-file.js';
import { agentRows, clientRow, organizationRow, resourceServerRow } from './registry-rows.js';

/** One entry of a registry file and what applying it did. */
export interface AppliedEntry {
  kind: 'organization' | 'client' | 'resource server' | 'agent';
  id: string;
  outcome: 'created' | 'changed' | 'left';
}

type Row = ObjectLiteral; // with `ownedByFile`

interface Table<Entity extends Row> {
  kind: AppliedEntry['kind'];
  entity: EntityTarget<Entity>;
  key: string & keyof Entity;
  rows: Partial<Entity>[];
  /** The column without which a new row is useless, and what the file calls its content. */
  secret?: [column: string, name: string];
}

const ATTEMPTS = 5;

/** Applies a registry file to the database, and writes the database's registry as a file. */
@Injectable()
export class RegistryFile {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly catalogue: GrantCatalogue,
  ) {}

  /**
   * Brings the database to what the file lists, as one change; what it does not list stays, and is no longer the file's.
   * Applied twice, the second time changes nothing.
   *
   * @throws RegistryFileError naming every fault, in which case nothing is changed
   */
  async apply(path: string): Promise<AppliedEntry[]> {
    const document = await readRegistryFile(path);
    await this.registry.renew();
    const faults = contradictionsOf(document, this.catalogue, (id) => this.registry.organization(id) !== undefined);
    if (faults.length > 0) throw new RegistryFileError(faults);
    for (let attempt = 1; ; attempt++) {
      try {
        // passwords take long to hash: before the transaction, not in it
        const agents = await agentRows(document.agents, await this.dataSource.getRepository(Agent).find());
        const servers = document.resource_servers.map(resourceServerRow);
        const applied = await this.database.transaction((manager) =>
          this.write(manager, [
            {
              kind: 'organization',
              entity: Organization,
              key: 'id',
              rows: document.organizations.map(organizationRow),
            },
            { kind: 'client', entity: ClientApplication, key: 'clientId', rows: document.clients.map(clientRow) },
            {
              kind: 'resource server',
              entity: ResourceServer,
              key: 'id',
              rows: servers,
              secret: ['secretHash', 'secret'],
            },
            { kind: 'agent', entity: Agent, key: 'email', rows: agents, secret: ['passwordHash', 'password'] },
          ] as Table<Row>[]),
        );
        await this.registry.renew();
        return applied;
      } catch (error) {
        // another process applies its file at this moment: read again what it has written
        if (attempt === ATTEMPTS || !(isDuplicate(error) || isRepeatable(error))) throw error;
      }
    }
  }

  /** The registry as YAML, without secrets: those are stored only as hashes. */
  async export(): Promise<string> {
    const all = <Entity extends Row>(entity: EntityTarget<Entity>) => this.dataSource.getRepository(entity).find();
    const [organizations, clients, servers, agents] = await Promise.all([
      all(Organization),
      all(ClientApplication),
      all(ResourceServer),
      all(Agent),
    ]);
    return stringify(exportedRegistry(organizations, clients, servers, agents), { aliasDuplicateObjects: false });
  }

  private async write(manager: EntityManager, tables: Table<Row>[]): Promise<AppliedEntry[]> {
    const applied: AppliedEntry[] = [];
    let disowned = 0;
    for (const table of tables) {
      const existing = await manager.find(table.entity);
      for (const row of table.rows) applied.push(await applyRow(manager, table, row, existing));
      disowned += await disownOthers(manager, table, existing);
    }
    if (disowned > 0 || applied.some(({ outcome }) => outcome !== 'left')) {
      await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
    }
    return applied;
  }
}

async function applyRow(
  manager: EntityManager,
  { kind, entity, key, secret }: Table<Row>,
  row: Partial<Row>,
  existing: Row[],
): Promise<AppliedEntry> {
  const wanted: Partial<Row> = { ...row, ownedByFile: true };
  const id = String(wanted[key]);
  const current = existing.find((other) => other[key] === wanted[key]);
  if (!current) {
    if (secret && wanted[secret[0]] === undefined)
      throw new RegistryFileError([`${kind} ${id}: a new one needs its ${secret[1]}`]);
    await manager.insert(entity, wanted);
    return { kind, id, outcome: 'created' };
  }
  const changes = Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => value !== undefined && !isSame(value, current[name])),
  );
  if (Object.keys(changes).length === 0) return { kind, id, outcome: 'left' };
  await manager.update(entity, { [key]: wanted[key] }, changes);
  return { kind, id, outcome: 'changed' };
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What the file lists no longer is the admin API's to change; returns how many rows that is. */
async function disownOthers(
  manager: EntityManager,
  { entity, key, rows }: Table<Row>,
  existing: Row[],
): Promise<number> {
  const listed = new Set(rows.map((row) => row[key]));
  const others = existing.filter((row) => row.ownedByFile && !listed.has(row[key]));
  for (const row of others) await manager.update(entity, { [key]: row[key] }, { ownedByFile: false });
  return others.length;
}
