import { randomUUID } from 'node:crypto';
import type { EntityTarget, ObjectLiteral } from 'typeorm';
import { Agent } from './agent.entity.js';
import { ClientApplication } from './client-application.entity.js';
import { agentEntry, clientEntry, organizationEntry, resourceServerEntry } from './file/export-registry.js';
import { agentRow, clientRow, NEW_ORGANIZATION, organizationRow, resourceServerRow } from './file/registry-rows.js';
import { Organization } from './organization.entity.js';
import { ResourceServer } from './resource-server.entity.js';

/** The lists of the registry, by the names that the registry file gives them. */
export type EntryList = 'organizations' | 'clients' | 'resource_servers' | 'agents';

/** An entry in the registry file's shape, with how it is addressed and whether the file owns it. */
export type Entry = Record<string, unknown>;

/** How the entries of one list are kept: by which key, and as which row. */
export interface EntryKind {
  entity: EntityTarget<ObjectLiteral>;
  /** The property of the row by which an entry is addressed, and the field of the entry that says it; agents have none. */
  key: string;
  field?: string;
  rowOf(entry: never, key: string, passwordHash?: string): ObjectLiteral;
  entryOf(row: never): object;
  /** Columns of a new row that its entry may leave out. */
  defaults?: ObjectLiteral;
  /** The key of a new entry. */
  newKey(entry: ObjectLiteral): string;
}

export const ENTRY_KINDS: Record<EntryList, EntryKind> = {
  organizations: {
    entity: Organization,
    key: 'id',
    field: 'id',
    rowOf: organizationRow,
    entryOf: organizationEntry,
    defaults: NEW_ORGANIZATION,
    newKey: ({ id }) => id,
  },
  clients: {
    entity: ClientApplication,
    key: 'clientId',
    field: 'client_id',
    rowOf: clientRow,
    entryOf: clientEntry,
    newKey: ({ client_id }) => client_id,
  },
  resource_servers: {
    entity: ResourceServer,
    key: 'id',
    field: 'id',
    rowOf: resourceServerRow,
    entryOf: resourceServerEntry,
    newKey: ({ id }) => id,
  },
  agents: {
    entity: Agent,
    key: 'id',
    rowOf: (entry, key, passwordHash) => agentRow(key, entry, passwordHash),
    entryOf: agentEntry,
    newKey: () => randomUUID(),
  },
};
