import { agentResource } from './agent.resource.js';
import { clientResource } from './client.resource.js';
import { organizationResource } from './organization.resource.js';
import type { RegistryResource } from './registry-resource.js';
import { resourceServerResource } from './resource-server.resource.js';

/**
 * In the order of the file: a resource follows those that it refers to. A new resource needs:
 *
 * - an entity with the columns `from_file` and `revision`, and a migration (src/migrations)
 * - a file `x.resource.ts` with an entry class and `defineResource`, and a line here
 * - a kind of party in the audit, added to `AuditParty` (audit/audit-event.ts) by declaration merging
 * - if token requests read it: a column `deleted_at`, a line in registry-memory.ts and a getter in
 *   registry.ts
 * - if it has tokens: `tokensEndWith`, and a line in entry-endings.module.ts
 */
export const REGISTRY_RESOURCES: readonly RegistryResource[] = [
  organizationResource,
  clientResource,
  resourceServerResource,
  agentResource,
];
