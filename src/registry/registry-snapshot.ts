import type { Type } from '@nestjs/common';
import { ClientApplication } from './client-application.entity.js';
import { EntityReader, type Reads } from './entity-reader.js';
import { Organization } from './organization.entity.js';
import type { ChangedKeys } from './registry-revision.js';
import { ResourceServer } from './resource-server.entity.js';
import { clientResource } from './resources/client.resource.js';
import { organizationResource } from './resources/organization.resource.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { resourceServerResource } from './resources/resource-server.resource.js';

/** The registry of one revision in memory, by the keys that requests name. Agents are not in memory. */
export class RegistrySnapshot {
  revision = -1;
  readonly organizations = new ResourceEntries(Organization, organizationResource);
  readonly clients = new ResourceEntries(ClientApplication, clientResource);
  readonly resourceServers = new ResourceEntries(ResourceServer, resourceServerResource);
  readonly origins = new RegistryOrigins();

  /**
   * Reads the entries that differ from the database, and then replaces all of them at once.
   *
   * @param changed the changed entries; `undefined` if all entries must be read
   */
  async update(revision: number, changed: ChangedKeys | undefined, reads: Reads): Promise<void> {
    const servers = await this.resourceServers.differences(reads, changed);
    // In a read of all entries, clients come before organizations, so that the organization of a client that is created
    // meanwhile is read too. A read of changes has all entries of its revisions in any order.
    const clients = await this.clients.differences(reads, changed, ({ allOrigins }) => allOrigins);
    const organizations = await this.organizations.differences(reads, changed);
    for (const each of organizations) this.organizations.apply(each);
    for (const each of servers) this.resourceServers.apply(each);
    for (const each of clients) {
      this.clients.apply(each);
      this.origins.set(each.key, each.origins);
    }
    this.revision = revision;
  }
}

/** An entry that differs from the one in memory. `undefined` means that it was deleted. */
interface Difference<Entity> {
  key: string;
  entry: Entity | undefined;
  origins?: string[] | undefined;
}

/** The entries of one resource in memory, by their keys. */
class ResourceEntries<Entity extends object> extends Map<string, Entity> {
  private readonly reader: EntityReader<Entity>;

  constructor(
    entity: Type<Entity>,
    private readonly resource: RegistryResource,
  ) {
    super();
    this.reader = new EntityReader(entity, resource.key.column as keyof Entity & string);
  }

  /**
   * The differences between the database and the entries in memory. Equal entries are not returned, so that a second
   * copy of the registry never exists.
   *
   * @param originsOf called for each page of entries, because the origins of all entries take long
   */
  async differences(reads: Reads, changed?: ChangedKeys, originsOf?: (entry: Entity) => string[]) {
    const {
      key: { column },
      list,
    } = this.resource;
    const keys = changed && (changed.get(list) ?? new Set<string>());
    const missing = new Set(keys ?? this.keys());
    const differences: Difference<Entity>[] = [];
    for await (const page of keys ? this.reader.withKeys(reads, keys) : this.reader.inPages(reads)) {
      for (const entry of page) {
        const key = String(entry[column as keyof Entity]);
        missing.delete(key);
        if (!isSame(entry, this.get(key))) differences.push({ key, entry, origins: originsOf?.(entry) });
      }
    }
    for (const key of missing) differences.push({ key, entry: undefined });
    return differences;
  }

  apply({ key, entry }: Difference<Entity>): void {
    if (entry === undefined) this.delete(key);
    else this.set(key, entry);
  }
}

function isSame<Entity extends object>(one: Entity, other: Entity | undefined): boolean {
  if (other === undefined) return false;
  return Object.entries(one).every(([property, value]) => {
    const otherValue = other[property as keyof Entity];
    return value === otherValue || (value instanceof Object && JSON.stringify(value) === JSON.stringify(otherValue));
  });
}

/** The origins that the pages of each client come from, and those of all clients together. */
class RegistryOrigins {
  private readonly byClient = new Map<string, readonly string[]>();
  /** The number of clients with each origin. */
  private readonly clientCounts = new Map<string, number>();

  has(clientId: string, origin: string): boolean {
    return this.byClient.get(clientId)?.includes(origin) ?? false;
  }

  hasAny(origin: string): boolean {
    return this.clientCounts.has(origin);
  }

  /** Replaces the origins of a client. `undefined` removes the client. */
  set(clientId: string, origins: readonly string[] | undefined): void {
    for (const origin of this.byClient.get(clientId) ?? []) this.count(origin, -1);
    if (origins === undefined) return void this.byClient.delete(clientId);
    this.byClient.set(clientId, origins);
    for (const origin of origins) this.count(origin, 1);
  }

  private count(origin: string, difference: 1 | -1): void {
    const count = (this.clientCounts.get(origin) ?? 0) + difference;
    if (count === 0) this.clientCounts.delete(origin);
    else this.clientCounts.set(origin, count);
  }
}
