import type { Type } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { ClientApplication } from './client-application.entity.js';
import { Organization } from './organization.entity.js';
import { ResourceServer } from './resource-server.entity.js';
import { pagesOf, pagesSince, type RetainedRow } from './row-pages.js';

/** Longer texts are rarely equal. */
const MAX_SHARED_CHARACTERS = 200;
const MAX_SHARED_TEXTS = 1_000;

/** What has ended with a suspension. */
export type Suspension = Pick<Organization, 'suspended' | 'issuedBefore'>;

/** What the process knows of a deleted entry. */
type DeletedEntry = Suspension & Pick<Organization, 'offboardingAt'>;

/** The registry in memory, by the keys that requests name. Agents are not in memory. */
export class RegistryMemory {
  readonly organizations = new Entries(Organization, 'id');
  readonly origins = new ClientOrigins();
  readonly clients = new Entries(ClientApplication, 'clientId', (id, client) =>
    this.origins.set(id, client?.allOrigins),
  );
  readonly resourceServers = new Entries(ResourceServer, 'id');

  /**
   * Organizations come first, so that the organization of each client is known. An entry that is written meanwhile may
   * be read already; the next read gets it again.
   *
   * @param after the revision in memory; `undefined` if all entries must be read
   */
  async read(manager: EntityManager, after: number | undefined): Promise<void> {
    await this.organizations.read(manager, after);
    await this.resourceServers.read(manager, after);
    await this.clients.read(manager, after);
  }
}

/** The entries of one table that exist. */
class Entries<Row extends RetainedRow & Partial<DeletedEntry>> {
  private readonly rows = new Map<string, Row>();
  /** Of deleted clients and organizations only what is needed. Tokens do not name resource servers. */
  private readonly deleted = new Map<string, DeletedEntry>();

  constructor(
    private readonly entity: Type<Row>,
    private readonly column: keyof Row & string,
    private readonly onChange?: (key: string, row: Row | undefined) => void,
  ) {}

  get size(): number {
    return this.rows.size;
  }

  get(key: string): Row | undefined {
    return this.rows.get(key);
  }

  deletedEntry(key: string): Suspension | undefined {
    return this.deleted.get(key);
  }

  /** When the erasure of each entry that is being off-boarded begins, or began. */
  offboardingTimes(): number[] {
    return [...this.rows.values(), ...this.deleted.values()].flatMap((entry) => entry.offboardingAt?.getTime() ?? []);
  }

  /** Page by page, so that a second copy of the registry never exists. */
  async read(manager: EntityManager, after: number | undefined): Promise<void> {
    const { entity, column } = this;
    const gone = new Set(after === undefined ? [...this.rows.keys(), ...this.deleted.keys()] : []);
    const shared = new Map<string, unknown>();
    const pages =
      after === undefined
        ? pagesOf(manager, entity, column, {}, { withDeleted: true })
        : pagesSince(manager, entity, column, after);
    for await (const page of pages) {
      for (const row of page) {
        const key = String(row[column]);
        freezeValues(row, shared);
        gone.delete(key);
        this.set(key, row);
      }
    }
    for (const key of gone) this.set(key, undefined);
  }

  private set(key: string, row: Row | undefined): void {
    const isDeleted = row !== undefined && row.deletedAt !== null;
    const { suspended, issuedBefore = null, offboardingAt = null } = row ?? {};
    const deleted = isDeleted && suspended !== undefined ? { suspended, issuedBefore, offboardingAt } : undefined;
    setOrDelete(this.deleted, key, deleted);
    setOrDelete(this.rows, key, isDeleted ? undefined : row);
    this.onChange?.(key, this.rows.get(key));
  }
}

/** All requests share the lists and settings. Equal short ones become one value, which takes less memory. */
function freezeValues(entry: ObjectLiteral, shared: Map<string, unknown>): void {
  for (const [column, value] of Object.entries(entry)) {
    if (!(value instanceof Object) || value instanceof Date) continue;
    const text = JSON.stringify(value);
    entry[column] = shared.get(text) ?? JSON.parse(text, (_key, part) => Object.freeze(part));
    if (text.length <= MAX_SHARED_CHARACTERS && shared.size < MAX_SHARED_TEXTS) shared.set(text, entry[column]);
  }
}

/** The origins that the pages of each client come from, and the origins of all clients together. */
class ClientOrigins {
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

function setOrDelete<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
