import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Identities } from '../identity/identities.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { DELETE_OWN, FIND_OWN, INSERT_LINK } from './organization-user-statements.js';

/** Links customers of browsers to the customer of a user (protocol §4.7). */
@Injectable()
export class UserLinks {
  constructor(
    private readonly database: Database,
    private readonly identities: Identities,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** @param attempt identifies the request, so that it recognizes its own write */
  async link(linkedId: string, customerId: string, organizationId: string, attempt: string): Promise<void> {
    const now = new Date(this.clock.now());
    const changed = await this.database.executeIdempotent(INSERT_LINK, [
      linkedId,
      organizationId,
      customerId,
      attempt,
      now,
      now,
    ]);
    if (changed === 0 && !(await this.isLinkedBy(attempt, linkedId))) return;
    const exists = async (entityId: string) => (await this.identities.find(entityId, organizationId)) !== undefined;
    if ((await exists(linkedId)) && (await exists(customerId)))
      return this.auditLink(customerId, linkedId, organizationId);
    // one of them was erased before the link existed, so its erasure did not delete the link
    await this.database.executeIdempotent(DELETE_OWN, [linkedId, attempt]);
  }

  auditLink(id: string, linked: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    const actor = { kind: 'customer' } as const;
    const details = { linked };
    this.audit.record({ event: 'identity.linked', outcome: 'success', actor, subject, organizationId, details });
  }

  private async isLinkedBy(attempt: string, entityId: string): Promise<boolean> {
    return (await this.database.select(FIND_OWN, [entityId, attempt])).length > 0;
  }
}
