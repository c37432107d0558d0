import { Injectable, Logger, ServiceUnavailableException } from '@nestjs/common';
import { Customers } from '../customer/customers.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Database } from '../platform/database/database.js';
import { CustomerEvents } from '../session/feed/customer-events.js';
import { SessionEndings } from '../session/session-endings.js';
import { CustomerDataParticipants } from './customer-data-participants.js';

/** After so many errors of an unavailable database, each after up to a second, the purge does not try other customers. */
const MAX_UNAVAILABLE_COUNT = 3;

/** Erases customers (protocol §5.8). */
@Injectable()
export class CustomerErasure {
  private readonly logger = new Logger(CustomerErasure.name);

  constructor(
    private readonly database: Database,
    private readonly customers: Customers,
    private readonly endings: SessionEndings,
    private readonly events: CustomerEvents,
    private readonly audit: Audit,
    private readonly participants: CustomerDataParticipants,
  ) {}

  /**
   * One transaction deletes everything but the customer's row, which it marks. Then the extensions delete their data, and
   * the row goes last. A repetition, or the purge, continues after a failure.
   *
   * @param actor the caller, for the audit event
   */
  async erase(entityId: string, actor: AuditParty): Promise<void> {
    const customer = await this.customers.find(entityId);
    if (!customer) return;
    const { organization_id: organizationId } = customer;
    const isMarked = await this.database.transaction(async (manager) => {
      const generation = await this.customers.eraseIn(manager, entityId);
      if (generation === undefined) return false;
      await this.endings.endAllIn(manager, entityId, generation, true);
      await this.events.erasedIn(manager, { organizationId, entityId });
      return true;
    });
    if (isMarked) this.audit.success('identity.erased', actor, party('customer', entityId), { organizationId });
    await this.finish(entityId);
  }

  /**
   * Finishes the erasure of customers in a purge. An error of one customer is logged only, and the next purge tries again.
   *
   * @returns the number of customers that failed
   * @throws ServiceUnavailableException if the database was unavailable for several customers, each for a second
   */
  async finishInPurge(entityIds: string[]): Promise<number> {
    let [failedCount, unavailableCount] = [0, 0];
    for (const id of entityIds)
      await this.finish(id).catch((error: Error) => {
        failedCount++;
        if (error instanceof ServiceUnavailableException && ++unavailableCount === MAX_UNAVAILABLE_COUNT) throw error;
        this.logger.warn(`the data of customer ${id} is not deleted; the next purge tries again: ${error.message}`);
      });
    return failedCount;
  }

  private async finish(entityId: string): Promise<void> {
    await this.participants.onErase(entityId);
    await this.customers.deleteErased(entityId);
  }
}
