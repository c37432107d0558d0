import { Injectable } from '@nestjs/common';
import { OAuthError } from '../../../oauth/oauth-error.js';
import type { AuditParty } from '../../../platform/audit/audit-event.js';
import { Clock } from '../../../platform/clock.js';
import { Configuration } from '../../../platform/configuration/configuration.js';
import { DatabaseClock } from '../../../platform/database/database-clock.js';
import { ORGANIZATIONS } from '../../../registry/entries/organization.entry.js';
import type { Organization } from '../../../registry/organization.entity.js';
import type { EntryChange } from '../entry-change.js';
import { existingRow, OPERATOR_TIMEOUT_MS } from '../registry-editor.js';
import { RegistryTransactions } from '../registry-transactions.js';

const HOUR_MS = 3_600_000;
/** After it no process serves the suspended organization any more, so the erasure misses nothing new. */
const LAST_REQUESTS_MARGIN_MS = 60_000;

const ERRORS = {
  notSuspended: () => OAuthError.conflict('id: suspend the organization first, with PATCH and suspended: true'),
  begun: () => OAuthError.conflict('id: the erasure has begun and cannot be cancelled'),
};

/** Requests and cancels the off-boarding of organizations (protocol §9.1). */
@Injectable()
export class OffboardingRequests {
  constructor(
    private readonly transactions: RegistryTransactions,
    private readonly clock: Clock,
    private readonly databaseClock: DatabaseClock,
    private readonly configuration: Configuration,
  ) {}

  /**
   * Changes nothing if the organization is being off-boarded already.
   *
   * @throws OAuthError `not_found`, `precondition_failed`; `conflict` if the organization is not suspended
   */
  async request(id: string, { actor, ifMatch }: { actor: AuditParty; ifMatch?: string | undefined }): Promise<void> {
    await this.change(id, actor, ifMatch, (row) => {
      if (row.offboardingAt !== null) return undefined;
      if (!row.suspended) throw ERRORS.notSuspended();
      return this.beginOf(row);
    });
  }

  /**
   * Changes nothing if the organization is not being off-boarded. It stays suspended.
   *
   * @throws OAuthError `not_found`; `conflict` if the erasure has begun
   */
  async cancel(id: string, actor: AuditParty): Promise<void> {
    await this.change(id, actor, undefined, ({ offboardingAt, deletedAt }) => {
      if (offboardingAt === null) return undefined;
      if (deletedAt !== null) throw ERRORS.begun();
      return null;
    });
  }

  private async change(
    id: string,
    actor: AuditParty,
    ifMatch: string | undefined,
    decide: (row: Organization) => Date | null | undefined,
  ): Promise<void> {
    await this.transactions.run(
      actor,
      async (manager): Promise<EntryChange[]> => {
        const offboardingAt = decide(await existingRow(manager, ORGANIZATIONS, id, ifMatch));
        if (offboardingAt === undefined) return [];
        const fields = ['offboarding'];
        return [{ kind: ORGANIZATIONS, key: id, change: 'changed', columns: { offboardingAt }, fields }];
      },
      { timeoutMs: OPERATOR_TIMEOUT_MS },
    );
  }

  private beginOf({ issuedBefore }: Organization): Date {
    const now = Math.max(this.clock.now(), this.databaseClock.now());
    const requested = now + this.configuration.OFFBOARDING_DELAY_HOURS * HOUR_MS;
    return new Date(Math.max(requested, (issuedBefore?.getTime() ?? 0) + LAST_REQUESTS_MARGIN_MS));
  }
}
