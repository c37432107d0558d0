import { Injectable } from '@nestjs/common';
import { MigrationState } from '../access-token/migration-state.js';
import { Clock } from '../platform/clock.js';
import { dayOf } from '../platform/day.js';
import { Registry } from '../registry/registry.js';

export const DEFAULT_IDLE_DAYS = 731;

/** Decides whether a browser was not seen for so long that it no longer leads to a customer (protocol §5.9). */
@Injectable()
export class IdleRule {
  constructor(
    private readonly registry: Registry,
    private readonly clock: Clock,
    private readonly migration: MigrationState,
  ) {}

  /**
   * Processes of release 1 note no days of customers, so no browser is idle until `idle_days` after the completion of
   * the upgrade.
   *
   * @param seenDay the last day on which the browser was seen in the organization and group
   */
  isIdle(organizationId: string, seenDay: number): boolean {
    const lastDay = Math.max(seenDay, this.migration.completeDay);
    return lastDay < dayOf(this.clock.now()) - this.idleDaysOf(organizationId);
  }

  /** Processes of release 1 do not know the customer that replaces an idle one, so none is replaced for them. */
  private idleDaysOf(organizationId: string): number {
    if (!this.migration.isComplete) return DEFAULT_IDLE_DAYS;
    return this.registry.organization(organizationId)?.idleDays ?? DEFAULT_IDLE_DAYS;
  }
}
