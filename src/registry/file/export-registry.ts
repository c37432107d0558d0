import type { Agent } from '../agent.entity.js';
import type { ClientApplication } from '../client-application.entity.js';
import type { Organization } from '../organization.entity.js';
import type { ResourceServer } from '../resource-server.entity.js';

/** The shape of the registry file (contract, section 2) for what is registered; secrets are left out. */
export function exportedRegistry(
  organizations: Organization[],
  clients: ClientApplication[],
  resourceServers: ResourceServer[],
  agents: Agent[],
): object {
  return {
    organizations: organizations.map(organizationEntry),
    clients: clients.map(clientEntry),
    resource_servers: resourceServers.map(resourceServerEntry),
    agents: agents.map(agentEntry),
  };
}

export function organizationEntry({ id, name, chatBetweenGroups, grants, publicClients }: Organization): object {
  return {
    id,
    name,
    license: { chat_between_groups: chatBetweenGroups },
    public_clients: publicClients ?? [],
    grants,
  };
}

export function clientEntry(client: ClientApplication): object {
  return {
    client_id: client.clientId,
    name: client.name,
    client_type: client.clientType,
    ...(client.organizationId !== null && { organization_id: client.organizationId }),
    redirect_uris: client.redirectUris,
    redirect_uri_match: client.redirectUriMatch,
    origins: client.origins,
    ...(client.grantTypes !== null && { grant_types: client.grantTypes }),
    scopes: client.scopes,
    grants: client.grants,
  };
}

export function resourceServerEntry({ id, audiences }: ResourceServer): object {
  return { id, audiences };
}

export function agentEntry({ email, name, organizationId, scopes }: Agent): object {
  return { email, name, organization_id: organizationId, scopes };
}
