import type { ObjectLiteral } from 'typeorm';
import type { ClientApplication } from './client-application.entity.js';
import { isSameValue } from './entry.js';
import type { Organization } from './organization.entity.js';
import type { ChangedKeys } from './registry-revision.js';
import type { ResourceServer } from './resource-server.entity.js';
import { clientResource } from './resources/client.resource.js';
import { organizationResource } from './resources/organization.resource.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { resourceServerResource } from './resources/resource-server.resource.js';
import { pagesOf, type Reads, rowsWithKeys } from './row-pages.js';

/** Longer texts are rarely equal. */
const MAX_SHARED_CHARACTERS = 200;
const MAX_SHARED_TEXTS = 1_000;

/** The registry of one revision in memory, by the keys that requests name. Agents are not in memory. */
export class RegistrySnapshot {
  revision = -1;
  readonly organizations = new Map<string, Organization>();
  readonly clients = new Map<string, ClientApplication>();
  readonly resourceServers = new Map<string, ResourceServer>();
  readonly origins = new RegistryOrigins();

  /** Replaces the differing entries at once. `changed` is `undefined` if all entries must be read. */
  async update(revision: number, changed: ChangedKeys | undefined, reads: Reads): Promise<void> {
    const servers = await differences(resourceServerResource, this.resourceServers, changed, reads);
    // In a read of all entries, clients come before organizations, so that the organization of a client that is created
    // meanwhile is read too. A read of changes has all entries of its revisions in any order.
    const origins = new Map<string, string[]>();
    const clients = await differences(clientResource, this.clients, changed, reads, ({ clientId, allOrigins }) =>
      origins.set(clientId, allOrigins),
    );
    const organizations = await differences(organizationResource, this.organizations, changed, reads);
    for (const [id, organization] of organizations) setOrDelete(this.organizations, id, organization);
    for (const [id, server] of servers) setOrDelete(this.resourceServers, id, server);
    for (const [id, client] of clients) {
      setOrDelete(this.clients, id, client);
      this.origins.set(id, origins.get(id));
    }
    this.revision = revision;
  }
}

/** `undefined` means deleted. Equal entries are left out, so that a second copy of the registry never exists. */
async function differences<Entity extends ObjectLiteral>(
  { entity, key: { column }, list }: RegistryResource,
  known: ReadonlyMap<string, Entity>,
  changed: ChangedKeys | undefined,
  reads: Reads,
  onDifference?: (entry: Entity) => void,
): Promise<Map<string, Entity | undefined>> {
  const keys = changed && (changed.get(list) ?? new Set<string>());
  const found = new Map<string, Entity | undefined>();
  const missing = new Set(keys ?? known.keys());
  const shared = new Map<string, unknown>();
  for await (const page of keys ? rowsWithKeys(reads, entity, column, keys) : pagesOf(reads, entity, column)) {
    for (const entry of page as Entity[]) {
      const key = String(entry[column]);
      missing.delete(key);
      if (isSame(entry, known.get(key))) continue;
      freezeValues(entry, shared);
      found.set(key, entry);
      onDifference?.(entry);
    }
  }
  for (const key of missing) found.set(key, undefined);
  return found;
}

function isSame(one: ObjectLiteral, other: ObjectLiteral | undefined): boolean {
  if (other === undefined) return false;
  return Object.entries(one).every(([property, value]) => isSameValue(value, other[property]));
}

/** All requests share the lists and settings. Equal short ones become one value, which takes less memory. */
function freezeValues(entry: ObjectLiteral, shared: Map<string, unknown>): void {
  for (const [column, value] of Object.entries(entry)) {
    if (!(value instanceof Object)) continue;
    const text = JSON.stringify(value);
    entry[column] = shared.get(text) ?? JSON.parse(text, (_key, part) => Object.freeze(part));
    if (text.length <= MAX_SHARED_CHARACTERS && shared.size < MAX_SHARED_TEXTS) shared.set(text, entry[column]);
  }
}

function setOrDelete<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

/** The origins that the pages of each client come from, and the origins of all clients together. */
class RegistryOrigins {
  private readonly byClient = new Map<string, readonly string[]>();
  private readonly clientCounts = new Map<string, number>();

  has(clientId: string, origin: string): boolean {
    return this.byClient.get(clientId)?.includes(origin) ?? false;
  }

  hasAny(origin: string): boolean {
    return this.clientCounts.has(origin);
  }

  set(clientId: string, origins: readonly string[] | undefined): void {
    for (const origin of this.byClient.get(clientId) ?? []) this.count(origin, -1);
    setOrDelete(this.byClient, clientId, origins);
    for (const origin of origins ?? []) this.count(origin, 1);
  }

  private count(origin: string, difference: 1 | -1): void {
    const count = (this.clientCounts.get(origin) ?? 0) + difference;
    setOrDelete(this.clientCounts, origin, count === 0 ? undefined : count);
  }
}
