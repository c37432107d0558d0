import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { OAuthError } from '../oauth/oauth-error.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectStatement } from '../platform/database/statement.js';
import { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { ClientApplication } from './client-application.entity.js';
import { Organization } from './organization.entity.js';
import type { RegistryRevision } from './registry-revision.entity.js';
import { type RegistrySnapshot, snapshotOf } from './registry-snapshot.js';
import { ResourceServer } from './resource-server.entity.js';

/** The interval between two reads of the revision, so that a change by another process is in force within 5 s. */
const RENEWAL_INTERVAL_MS = 2_000;

const READ_REVISION = selectStatement<[], EntityRow<RegistryRevision, 'revision'>>({
  columns: ['revision'],
  from: 'registry_revision',
  batch: true,
});

/**
 * The registry in memory, so that a request reads it without a query. It is renewed in the background. If the database
 * is unreachable, the last known registry stays in force.
 */
@Injectable()
export class Registry implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(Registry.name);
  private snapshot: RegistrySnapshot = snapshotOf(-1, [], [], []);
  private timer: NodeJS.Timeout | undefined;
  private renewal: Promise<void> | undefined;

  private renewedAt = performance.now();

  constructor(
    private readonly database: Database,
    metrics: MetricsRegistry,
  ) {
    this.measure(metrics);
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.renew();
    this.timer = setInterval(() => void this.renewQuietly(), RENEWAL_INTERVAL_MS);
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

  /**
   * The client with an id, called from an origin. If the request has an `Origin`, it must be one of this client's.
   * Otherwise a page of one tenant could act in the name of another tenant's client (protocol §2.8).
   *
   * @throws OAuthError `invalid_request`
   */
  clientCalling(clientId: string, origin: string | undefined): ClientApplication {
    const client = this.client(clientId);
    if (!client) throw OAuthError.invalidRequest('client_id: unknown');
    if (origin !== undefined && !this.snapshot.originsOf.get(clientId)?.has(origin)) {
      throw OAuthError.invalidRequest("Origin: not one of the client's");
    }
    return client;
  }

  resourceServer(id: string): ResourceServer | undefined {
    return this.snapshot.resourceServers.get(id);
  }

  /** Whether an origin belongs to any client. CORS uses it, because a preflight request does not name the client. */
  knowsOrigin(origin: string): boolean {
    return this.snapshot.origins.has(origin);
  }

  /** Reads the registry again if it has changed. */
  async renew(): Promise<void> {
    const [row] = await this.database.select(READ_REVISION, []);
    const revision = row?.revision ?? 0;
    if (revision !== this.snapshot.revision) await this.read(revision);
    this.renewedAt = performance.now();
  }

  private async read(revision: number): Promise<void> {
    const organizations = await this.database.read(Organization);
    const clients = await this.database.read(ClientApplication);
    const servers = await this.database.read(ResourceServer);
    this.snapshot = snapshotOf(revision, organizations, clients, servers);
  }

  private measure(metrics: MetricsRegistry): void {
    const ageOf = () => (performance.now() - this.renewedAt) / 1000;
    const revisionOf = () => this.snapshot.revision;
    new Gauge({
      name: 'cas_registry_age_seconds',
      help: 'Seconds since the process last compared its registry with the database.',
      registers: [metrics],
      collect() {
        this.set(ageOf());
      },
    });
    new Gauge({
      name: 'cas_registry_revision',
      help: 'The revision of the registry in memory.',
      registers: [metrics],
      collect() {
        this.set(revisionOf());
      },
    });
  }

  /** At most one renewal at a time, so that renewals do not accumulate while the database is slow. */
  private renewQuietly(): Promise<void> {
    this.renewal ??= this.renew()
      .catch((error) =>
        this.logger.warn(
          `the registry could not be read; the process uses the last registry that it read: ${error.message}`,
        ),
      )
      .finally(() => {
        this.renewal = undefined;
      });
    return this.renewal;
  }
}
