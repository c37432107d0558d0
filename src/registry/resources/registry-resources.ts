import { agentResource } from './agent.resource.js';
import { clientResource } from './client.resource.js';
import { organizationResource } from './organization.resource.js';
import type { RegistryResource } from './registry-resource.js';
import { resourceServerResource } from './resource-server.resource.js';

/** The resources of the registry in the order of its file: a resource follows those that it refers to. */
export const REGISTRY_RESOURCES: readonly RegistryResource[] = [
  organizationResource,
  clientResource,
  resourceServerResource,
  agentResource,
];
