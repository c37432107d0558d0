import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { LessThanOrEqual } from 'typeorm';
import { ENTRY_SECONDS } from '../../../feed/recorded-endings.js';
import { Audit, party } from '../../../platform/audit/audit.js';
import { Clock } from '../../../platform/clock.js';
import { Database } from '../../../platform/database/database.js';
import { DatabaseStart } from '../../../platform/database/database-start.js';
import { earlierTime } from '../../../platform/database/earlier-time.js';
import { LeasedSteps } from '../../../platform/database/leased-steps.js';
import { MetricsRegistry } from '../../../platform/metrics.js';
import { ClientApplication } from '../../../registry/client-application.entity.js';
import { DeletedEntries } from '../../../registry/deleted-entries.js';
import { ORGANIZATIONS } from '../../../registry/entries/organization.entry.js';
import { Organization } from '../../../registry/organization.entity.js';
import { Registry } from '../../../registry/registry.js';
import { RegistryTransactions } from '../registry-transactions.js';
import { OrganizationErasure } from './organization-erasure.js';

const INTERVAL_MS = 15_000;
/** An erasure works for a quarter of the time, because requests of other organizations use the same database. */
const PAUSES_PER_STEP = 3;
/** Neither a token nor an entry for verifiers from before the erasure exists then. */
const RETENTION_MS = ENTRY_SECONDS * 1000;

/**
 * Carries out off-boardings that are due (protocol §9.1). The organization is deleted first: from then on, the
 * off-boarding cannot be cancelled. Its row stays until the end, so that its id stays taken, and a process that stopped
 * continues.
 */
@Injectable()
export class Offboarding implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(Offboarding.name);
  private readonly leased: LeasedSteps;
  private timer: NodeJS.Timeout | undefined;
  private isStopping = false;
  private warned = '';

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly transactions: RegistryTransactions,
    private readonly erasure: OrganizationErasure,
    private readonly deletedEntries: DeletedEntries,
    private readonly audit: Audit,
    private readonly clock: Clock,
    private readonly start: DatabaseStart,
    metrics: MetricsRegistry,
  ) {
    this.leased = new LeasedSteps(database, 'offboarding', PAUSES_PER_STEP);
    metrics.gauge(
      'cas_offboardings',
      'Organizations whose off-boarding was requested and has not ended.',
      () => registry.offboardingTimes().length,
    );
    metrics.gauge(
      'cas_offboarding_age_seconds',
      'Seconds since the erasure of an organization was due that has not ended; 0 if none is.',
      () => this.dueForMs / 1000,
    );
  }

  onApplicationBootstrap(): void {
    if (!this.start.isOfCommand) this.scheduleNext();
  }

  onApplicationShutdown(): void {
    this.isStopping = true;
    this.leased.stop();
    clearTimeout(this.timer);
  }

  /** Does nothing if no erasure is due, which the registry in memory knows, or while another process does it. */
  async run(): Promise<void> {
    if (!this.isDue || !(await this.leased.acquire())) return;
    try {
      const now = await earlierTime(this.database, this.clock);
      const where = { offboardingAt: LessThanOrEqual(now) };
      for (const row of await this.database.manager.find(Organization, { where, withDeleted: true })) {
        const mayContinue = await this.advance(row, now).catch((error: Error) => {
          this.warn(`the organization ${row.id} is not erased; the service tries again: ${error.message}`);
          return true;
        });
        if (!mayContinue) return;
      }
    } finally {
      await this.leased.release();
    }
  }

  private get isDue(): boolean {
    return this.registry.offboardingTimes().some((dueAt) => dueAt <= this.clock.now());
  }

  /** Since the earliest erasure was due that has not ended; 0 if none is. */
  private get dueForMs(): number {
    const now = this.clock.now();
    return Math.max(0, ...this.registry.offboardingTimes().map((dueAt) => now - dueAt));
  }

  /** @returns false if the process stops, or another process has the lease */
  private async advance({ id, ...row }: Organization, now: Date): Promise<boolean> {
    const deletedAt = row.deletedAt ?? (await this.delete(id, now));
    if (!deletedAt) return true; // cancelled meanwhile
    const isLast = deletedAt.getTime() + RETENTION_MS <= now.getTime() && !(await this.hasClients(id));
    const { isFinished } = await this.leased.run(this.erasure.inSteps(id, deletedAt, isLast));
    if (!isFinished || !isLast) return isFinished;
    await this.deletedEntries.deleteOrganization(id, deletedAt, () => {
      this.audit.success('organization.erased', party('service'), party('organization', id), { organizationId: id });
      this.logger.log(`the off-boarding of the organization ${id} has ended`);
    });
    await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    return true;
  }

  /** The registry admits one writer at a time, so an off-boarding is cancelled before this or not at all. */
  private async delete(id: string, now: Date): Promise<Date | null | undefined> {
    await this.transactions.run(party('service'), async (manager) => {
      const isDue = await manager.existsBy(Organization, { id, offboardingAt: LessThanOrEqual(now) });
      if (isDue) this.logger.log(`the erasure of the organization ${id} begins`);
      return isDue ? [{ kind: ORGANIZATIONS, key: id, change: 'deleted' }] : [];
    });
    return (await this.database.manager.findOne(Organization, { where: { id }, withDeleted: true }))?.deletedAt;
  }

  /** The purge deletes the rows of deleted clients, when nothing is left that a new client with the id could use. */
  private hasClients(organizationId: string): Promise<boolean> {
    return this.database.manager.exists(ClientApplication, { where: { organizationId }, withDeleted: true });
  }

  private scheduleNext(): void {
    if (this.isStopping) return;
    this.timer = setTimeout(() => void this.runInBackground().then(() => this.scheduleNext()), INTERVAL_MS);
    this.timer.unref();
  }

  private async runInBackground(): Promise<void> {
    await this.run().catch((error: Error) => this.warn(`the off-boarding failed: ${error.message}`));
  }

  /** Not each 15 s again. */
  private warn(message: string): void {
    if (message !== this.warned) this.logger.warn(message);
    this.warned = message;
  }
}
