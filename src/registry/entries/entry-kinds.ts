import { AGENTS } from './agent.entry.js';
import { CLIENTS } from './client.entry.js';
import type { EntryKind } from './entry-kind.js';
import { ORGANIZATIONS } from './organization.entry.js';
import { RESOURCE_SERVERS } from './resource-server.entry.js';

/**
 * In the order of the registry file: organizations come before the entries that belong to them. A new kind needs:
 *
 * - an entity with the columns `from_file`, `revision` and `deleted_at`, and a migration (src/migrations)
 * - a file `x.entry.ts`, a line here, and its list in `RegistryFileFields`
 *   (operator/registry/file/registry-file-parser.ts)
 * - a controller (operator/registry/controllers)
 * - a kind of party in the audit (`AuditPartyKind`)
 * - if token requests read it: a line in registry-memory.ts and a getter in registry.ts
 */
export const ENTRY_KINDS: readonly EntryKind[] = [ORGANIZATIONS, CLIENTS, RESOURCE_SERVERS, AGENTS];
