import { AsyncResource } from 'node:async_hooks';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { DatabaseStart } from '../platform/database/database-start.js';
import { MetricsRegistry } from '../platform/metrics.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from './client-application.entity.js';
import type { Organization } from './organization.entity.js';
import { RegistryMemory, type Suspension } from './registry-memory.js';
import { readRevision } from './registry-revision.js';
import type { ResourceServer } from './resource-server.entity.js';

/** With the time to read the changes, a change of another process is in force within 5 s. */
const RENEWAL_INTERVAL_MS = 2_000;

/** Why tokens have ended with an entry of the registry. */
export type RegistryEndedReason = 'client_revoked' | 'client_suspended' | 'organization_suspended';

/** Claims of a token. */
interface IssuedClaims {
  client_id: string;
  organization_id?: string | undefined;
  /** Seconds since 1970. */
  iat?: number;
}

/** If the database is unreachable, the last known registry stays in force. */
@Injectable()
export class Registry implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(Registry.name);
  private readonly memory = new RegistryMemory();
  /** Of the registry in memory; -1 before the first read. */
  private revision = -1;
  private readonly reads: Counter<'kind'>;
  /** By performance.now(). */
  private renewedAt = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  /** So that an outage is logged once. */
  private isFailing = false;
  private running: Promise<void> = Promise.resolve();
  private waiting: Promise<void> | undefined;
  /** Without the context of the request, whose deadline would end the renewal for all who wait for it. */
  private readonly renewOnce = AsyncResource.bind(() => this.renewFromDatabase());

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly start: DatabaseStart,
    metrics: MetricsRegistry,
  ) {
    metrics.gauge(
      'cas_registry_age_seconds',
      'Seconds since the process last compared its registry with the database.',
      () => (performance.now() - this.renewedAt) / 1000,
    );
    metrics.gauge('cas_registry_revision', 'The revision of the registry in memory.', () => this.revision);
    metrics.gauge('cas_registry_clients', 'Clients that exist.', () => this.memory.clients.size);
    this.reads = metrics.counter(
      'cas_registry_reads_total',
      'Reads of the registry after its revision had changed: only the changes, or the full registry.',
      'kind',
    );
    for (const kind of ['changes', 'full']) this.reads.inc({ kind }, 0);
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.start.run(() => this.renew());
    this.timer = setInterval(() => void this.renewQuietly(), RENEWAL_INTERVAL_MS);
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
    this.isStopped = true;
  }

  /** `undefined` if it is suspended too. */
  organization(id: string): Organization | undefined {
    const organization = this.organizationSettings(id);
    return organization && this.isSuspended(organization) ? undefined : organization;
  }

  /** Also of a suspended organization, whose browsers go on when the suspension is taken back. */
  organizationSettings(id: string): Organization | undefined {
    return this.memory.organizations.get(id);
  }

  /** When the erasures are due of the organizations whose off-boarding has not ended, in milliseconds since 1970. */
  offboardingTimes(): number[] {
    return this.memory.organizations.offboardingTimes();
  }

  /** `undefined` if it is suspended too. */
  client(clientId: string): ClientApplication | undefined {
    const client = this.memory.clients.get(clientId);
    return client && this.isSuspended(client) ? undefined : client;
  }

  /**
   * Why what was issued to a client has ended with it, or with the organization; `undefined` if it has not. `iat` is
   * omitted for codes and refresh tokens, which a suspension does not end.
   */
  endedReason({ client_id, organization_id = '', iat }: IssuedClaims): RegistryEndedReason | undefined {
    const { clients, organizations } = this.memory;
    if (clients.deletedEntry(client_id)) return 'client_revoked';
    const client = clients.get(client_id);
    if (client && this.isSuspended(client, iat)) return 'client_suspended';
    const organization = organizations.get(organization_id) ?? organizations.deletedEntry(organization_id);
    return organization && this.isSuspended(organization, iat) ? 'organization_suspended' : undefined;
  }

  /**
   * A foreign `Origin` is rejected: a page of one tenant could act as the client of another (protocol §2.8).
   * @throws OAuthError `invalid_request`
   */
  requireClient(clientId: string, origin: string | undefined): ClientApplication {
    const client = this.client(clientId);
    if (!client) throw REQUEST_ERRORS.clientUnknown();
    if (origin !== undefined && !this.memory.origins.has(clientId, origin))
      throw OAuthError.invalidRequest("Origin: not one of the client's");
    return client;
  }

  /** @throws OAuthError `invalid_request` */
  requireOrganization(client: ClientApplication, organizationId: string): Organization {
    const organization = this.organization(organizationId);
    if (!organization) throw OAuthError.invalidRequest('organization_id: unknown');
    requestContext.set({ organizationId });
    if (!organization.admits(client)) throw REQUEST_ERRORS.clientOutsideOrganization();
    return organization;
  }

  resourceServer(id: string): ResourceServer | undefined {
    return this.memory.resourceServers.get(id);
  }

  /** Whether an origin belongs to any client. CORS uses it, because a preflight request does not name the client. */
  knowsOrigin(origin: string): boolean {
    return this.memory.origins.hasAny(origin);
  }

  /** A renewal that has begun may have read the revision before a change of the caller, who waits for the next one. */
  renew(): Promise<void> {
    this.waiting ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.waiting = undefined;
        this.running = this.renewOnce();
        return this.running;
      });
    return this.waiting;
  }

  private async renewFromDatabase(): Promise<void> {
    const { revision, completeFrom } = await readRevision(this.database);
    if (revision !== this.revision) {
      // a lower revision is that of a backup
      const knowsAllBefore = this.revision >= completeFrom && this.revision < revision;
      await this.memory.read(this.database.manager, knowsAllBefore ? this.revision : undefined);
      this.revision = revision;
      this.reads.inc({ kind: knowsAllBefore ? 'changes' : 'full' });
    }
    this.renewedAt = performance.now();
  }

  /**
   * A suspension that was taken back counts until the second of `issuedBefore` is over, so that no new token has an
   * `iat` that has ended.
   */
  private isSuspended({ suspended, issuedBefore }: Suspension, iat = Math.floor(this.clock.now() / 1000)): boolean {
    return suspended || (issuedBefore !== null && iat * 1000 <= issuedBefore.getTime());
  }

  /** At most one renewal waits, so that renewals do not accumulate while the database is slow. */
  private async renewQuietly(): Promise<void> {
    try {
      await this.renew();
      if (this.isFailing) this.logger.log('the registry can be read again');
      this.isFailing = false;
    } catch (error) {
      if (this.isStopped || this.isFailing) return; // the connections of a stopped process are closed
      this.isFailing = true;
      const { message } = error as Error;
      this.logger.warn(`the registry could not be read; the process uses the last registry that it read: ${message}`);
    }
  }
}
