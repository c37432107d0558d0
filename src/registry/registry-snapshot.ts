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
  readonly organizations = new ResourceEntries(Organization, 'id');
  readonly clients = new ResourceEntries(ClientApplication, 'clientId');
  readonly resourceServers = new ResourceEntries(ResourceServer, 'id');
  readonly origins = new RegistryOrigins();

  /**
   * Reads the entries that differ from the database, in portions, and then replaces all of them at once.
   *
   * @param changed the changed entries; `undefined` if all entries must be read
   */
  async update(revision: number, changed: ChangedKeys | undefined, reads: Reads): Promise<void> {
    const keysOf = ({ list }: RegistryResource) => (changed ? (changed.get(list) ?? new Set<string>()) : 'all');
    const servers = await gathered(this.resourceServers.differences(reads, keysOf(resourceServerResource)));
    // In a read of all entries, clients come before organizations, so that the organization of a client that is created
    // meanwhile is read too. A read of changes has all entries of its revisions in any order.
    const clients: (Difference<ClientApplication> & { origins: string[] | undefined })[] = [];
    for await (const differences of this.clients.differences(reads, keysOf(clientResource)))
      for (const difference of differences) clients.push({ ...difference, origins: difference.entry?.allOrigins });
    const organizations = await gathered(this.organizations.differences(reads, keysOf(organizationResource)));
    for (const each of organizations) this.organizations.apply(each);
    for (const each of servers) this.resourceServers.apply(each);
    for (const { origins, ...each } of clients) {
      this.clients.apply(each);
      this.origins.set(each.key, origins);
    }
    this.revision = revision;
  }
}

async function gathered<Item>(portions: AsyncIterable<Item[]>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const portion of portions) for (const item of portion) all.push(item);
  return all;
}

/** An entry that differs from the one in memory. `undefined` means that it was deleted. */
interface Difference<Entity> {
  key: string;
  entry: Entity | undefined;
}

/** The entries of one resource in memory, by their keys. */
class ResourceEntries<Entity extends object> extends Map<string, Entity> {
  private readonly reader: EntityReader<Entity>;

  constructor(
    entity: Type<Entity>,
    private readonly key: keyof Entity & string,
  ) {
    super();
    this.reader = new EntityReader(entity, key);
  }

  /**
   * The differences between the database and the entries in memory, in portions. Equal entries are not returned, so that
   * a second copy of the registry never exists.
   *
   * @param keys the keys of entries that may differ
   */
  async *differences(reads: Reads, keys: 'all' | ReadonlySet<string>): AsyncGenerator<Difference<Entity>[], void> {
    const found = new Set<string>();
    const pages = keys === 'all' ? this.reader.inPages(reads) : this.reader.withKeys(reads, keys);
    for await (const page of pages) {
      const differing = page.filter((entry) => !isSame(entry, this.get(this.keyOf(entry))));
      for (const entry of page) found.add(this.keyOf(entry));
      yield differing.map((entry) => ({ key: this.keyOf(entry), entry }));
    }
    const candidates = keys === 'all' ? [...this.keys()] : [...keys];
    yield candidates.filter((key) => !found.has(key)).map((key) => ({ key, entry: undefined }));
  }

  apply({ key, entry }: Difference<Entity>): void {
    if (entry === undefined) this.delete(key);
    else this.set(key, entry);
  }

  private keyOf(entry: Entity): string {
    return String(entry[this.key]);
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
