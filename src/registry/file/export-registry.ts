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
    organizations: organizations.map(({ id, name, chatBetweenGroups, grants }) => ({
      id,
      name,
      license: { chat_between_groups: chatBetweenGroups },
      grants,
    })),
    clients: clients.map((client) => ({
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
    })),
    resource_servers: resourceServers.map(({ id, audiences }) => ({ id, audiences })),
    agents: agents.map(({ email, name, organizationId, scopes }) => ({
      email,
      name,
      organization_id: organizationId,
      scopes,
    })),
  };
}
