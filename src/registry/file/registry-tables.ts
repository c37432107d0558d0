import type { EntityManager, EntityTarget, ObjectLiteral } from 'typeorm';
import { Agent } from '../agent.entity.js';
import { NEXT_GENERATION } from '../agents.js';
import { ClientApplication } from '../client-application.entity.js';
import { Organization } from '../organization.entity.js';
import { ResourceServer } from '../resource-server.entity.js';
import type { RegistryDocument } from './registry-document.js';
import {
  agentRows,
  clientRow,
  NEW_ORGANIZATION,
  organizationRow,
  resourceServerRow,
  withDefaults,
} from './registry-rows.js';

/** One entry of a registry file and what applying it did. */
export interface AppliedEntry {
  kind: 'organization' | 'client' | 'resource server' | 'agent';
  id: string;
  outcome: 'created' | 'changed' | 'left';
  /** The row as it is wanted, and the columns of it that changed. */
  row: ObjectLiteral;
  changes: string[];
}

/** A list of the file as rows of its table. A column that is `undefined` keeps what it has. */
export interface RegistryTable {
  kind: AppliedEntry['kind'];
  entity: EntityTarget<ObjectLiteral>;
  key: string;
  rows: ObjectLiteral[];
  /** Columns of a new row that its entry may leave out. */
  defaults?: ObjectLiteral;
}

/** The tables of a document, in an order that no row refers to a later one. */
export async function tablesOf(document: RegistryDocument, agents: Agent[]): Promise<RegistryTable[]> {
  return [
    {
      kind: 'organization',
      entity: Organization,
      key: 'id',
      rows: document.organizations.map(organizationRow),
      defaults: NEW_ORGANIZATION,
    },
    { kind: 'client', entity: ClientApplication, key: 'clientId', rows: document.clients.map(clientRow) },
    {
      kind: 'resource server',
      entity: ResourceServer,
      key: 'id',
      rows: document.resource_servers.map(resourceServerRow),
    },
    { kind: 'agent', entity: Agent, key: 'email', rows: await agentRows(document.agents, agents) },
  ];
}

/** Creates and changes the rows of a table, and gives up those that the file lists no longer; whether anything changed. */
export async function applyTable(manager: EntityManager, table: RegistryTable): Promise<[AppliedEntry[], boolean]> {
  const existing = await manager.find(table.entity);
  const applied: AppliedEntry[] = [];
  for (const row of table.rows) applied.push(await applyRow(manager, table, row, existing));
  const disowned = await disownOthers(manager, table, existing);
  return [applied, disowned > 0 || applied.some(({ outcome }) => outcome !== 'left')];
}

async function applyRow(
  manager: EntityManager,
  { kind, entity, key, defaults }: RegistryTable,
  listed: ObjectLiteral,
  existing: ObjectLiteral[],
): Promise<AppliedEntry> {
  const row: ObjectLiteral = { ...listed, ownedByFile: true };
  const id = String(row[key]);
  const current = existing.find((other) => other[key] === row[key]);
  if (!current) {
    await manager.insert(entity, withDefaults(row, defaults));
    return { kind, id, row, changes: Object.keys(row), outcome: 'created' };
  }
  const changes = Object.keys(row).filter(
    (column) => row[column] !== undefined && !isSame(row[column], current[column]),
  );
  if (changes.length === 0) return { kind, id, row, changes, outcome: 'left' };
  const changed = Object.fromEntries(changes.map((column) => [column, row[column]]));
  const generation = kind === 'agent' && isEnding(changes) && { generation: NEXT_GENERATION };
  await manager.update(entity, { [key]: row[key] }, { ...changed, ...generation });
  return { kind, id, row, changes, outcome: 'changed' };
}

/** Whether a change of an agent ends what was granted before. */
export function isEnding(changes: string[]): boolean {
  return changes.some((column) => ['passwordHash', 'organizationId', 'scopes'].includes(column));
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What the file lists no longer is the admin API's to change; returns how many rows that is. */
async function disownOthers(manager: EntityManager, table: RegistryTable, existing: ObjectLiteral[]): Promise<number> {
  const { entity, key, rows } = table;
  const listed = new Set(rows.map((row) => row[key]));
  const others = existing.filter((row) => row.ownedByFile && !listed.has(row[key]));
  for (const row of others) await manager.update(entity, { [key]: row[key] }, { ownedByFile: false });
  return others.length;
}
