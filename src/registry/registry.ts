import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { Database } from '../platform/database/database.js';
import { ClientApplication } from './client-application.entity.js';
import { Organization } from './organization.entity.js';

/** Milliseconds between two looks at the revision: what another process changes is seen within 5 s. */
const RENEWAL = 2_000;

interface Snapshot {
  revision: number;
  organizations: Map<string, Organization>;
  clients: Map<string, ClientApplication>;
  /** The origins that each client's pages come from. */
  originsOf: Map<string, Set<string>>;
  /** The origins of all clients together. */
  origins: Set<string>;
}

/**
 * Organizations and client applications as request paths read them: from memory, without waiting. Renewed in the
 * background; while the database is away the last known stays.
 */
@Injectable()
export class Registry implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(Registry.name);
  private snapshot: Snapshot = snapshotOf(-1, [], []);
  private timer: NodeJS.Timeout | undefined;
  private renewal: Promise<void> | undefined;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly database: Database,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.renew();
    this.timer = setInterval(() => void this.renewQuietly(), RENEWAL);
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  organization(id: string): Organization | undefined {
    return this.snapshot.organizations.get(id);
  }

  client(clientId: string): ClientApplication | undefined {
    return this.snapshot.clients.get(clientId);
  }

  /** Whether an `Origin` header is one of this very client's. */
  admitsOrigin(client: ClientApplication, origin: string): boolean {
    return this.snapshot.originsOf.get(client.clientId)?.has(origin) ?? false;
  }

  /** Whether some client's pages come from this origin: what CORS asks, which does not know the client yet. */
  knowsOrigin(origin: string): boolean {
    return this.snapshot.origins.has(origin);
  }

  /** Reads the registry again if it has changed. */
  async renew(): Promise<void> {
    const [row] = await this.database.select<{ revision: number }>('SELECT revision FROM registry_revision', []);
    const revision = row?.revision ?? 0;
    if (revision === this.snapshot.revision) return;
    const [organizations, clients] = await Promise.all([
      this.dataSource.getRepository(Organization).find(),
      this.dataSource.getRepository(ClientApplication).find(),
    ]);
    this.snapshot = snapshotOf(revision, organizations, clients);
  }

  /** One renewal at a time, since a slow database must not collect them. */
  private renewQuietly(): Promise<void> {
    this.renewal ??= this.renew()
      .catch((error) => this.logger.warn(`keeping the last known registry: ${error.message}`))
      .finally(() => {
        this.renewal = undefined;
      });
    return this.renewal;
  }
}

function snapshotOf(revision: number, organizations: Organization[], clients: ClientApplication[]): Snapshot {
  const originsOf = new Map(clients.map((client) => [client.clientId, new Set(client.allOrigins)]));
  return {
    revision,
    organizations: new Map(organizations.map((organization) => [organization.id, organization])),
    clients: new Map(clients.map((client) => [client.clientId, client])),
    originsOf,
    origins: new Set([...originsOf.values()].flatMap((origins) => [...origins])),
  };
}
