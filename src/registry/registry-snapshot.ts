import type { ChangedKeys } from './changes/changes-since.js';
import { ClientApplication } from './client-application.entity.js';
import { Organization } from './organization.entity.js';
import { RegistryOrigins } from './registry-origins.js';
import { ResourceServer } from './resource-server.entity.js';
import { clientResource } from './resources/client.resource.js';
import { organizationResource } from './resources/organization.resource.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { resourceServerResource } from './resources/resource-server.resource.js';
import type { Select } from './rows/entity-reader.js';
import { type Difference, ResourceEntries } from './rows/resource-entries.js';

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
  async update(revision: number, changed: ChangedKeys | undefined, select: Select): Promise<void> {
    const keysOf = ({ list }: RegistryResource) => (changed ? (changed.get(list) ?? new Set<string>()) : 'all');
    const servers = await gathered(this.resourceServers.differences(select, keysOf(resourceServerResource)));
    // In a read of all entries, clients come before organizations, so that the organization of a client that is created
    // meanwhile is read too. A read of changes has all entries of its revisions in any order.
    const clients: (Difference<ClientApplication> & { origins: string[] | undefined })[] = [];
    for await (const differences of this.clients.differences(select, keysOf(clientResource)))
      for (const difference of differences) clients.push({ ...difference, origins: difference.entry?.allOrigins });
    const organizations = await gathered(this.organizations.differences(select, keysOf(organizationResource)));
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
