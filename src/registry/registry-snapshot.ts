import type { ClientApplication } from './client-application.entity.js';
import type { Organization } from './organization.entity.js';
import type { ResourceServer } from './resource-server.entity.js';

/** The registry of one revision in memory, by the keys that requests name. */
export interface RegistrySnapshot {
  revision: number;
  organizations: Map<string, Organization>;
  clients: Map<string, ClientApplication>;
  resourceServers: Map<string, ResourceServer>;
  /** The origins that each client's pages come from. */
  originsOf: Map<string, Set<string>>;
  /** The origins of all clients together. */
  origins: Set<string>;
}

export function snapshotOf(
  revision: number,
  organizations: Organization[],
  clients: ClientApplication[],
  servers: ResourceServer[],
): RegistrySnapshot {
  const originsOf = new Map(clients.map((client) => [client.clientId, new Set(client.allOrigins)]));
  return {
    revision,
    organizations: new Map(organizations.map((organization) => [organization.id, organization])),
    clients: new Map(clients.map((client) => [client.clientId, client])),
    resourceServers: new Map(servers.map((server) => [server.id, server])),
    originsOf,
    origins: new Set([...originsOf.values()].flatMap((origins) => [...origins])),
  };
}
