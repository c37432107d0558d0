import { agentResource } from './agent.resource.js';
import { clientResource } from './client.resource.js';
import { organizationResource } from './organization.resource.js';
import type { RegistryResource } from './registry-resource.js';
import { resourceServerResource } from './resource-server.resource.js';

/**
 * The resources of the registry in the order of its file: a resource follows those that it refers to.
 *
 * A new resource needs an entity with a column `owned_by_file`, a description, a line here and a migration. A new kind of
 * party in the audit is added by declaration merging. If requests read the resource, registry-snapshot.ts reads it too.
 */
export const REGISTRY_RESOURCES: readonly RegistryResource[] = [
  organizationResource,
  clientResource,
  resourceServerResource,
  agentResource,
];
