import { Injectable, Logger, ServiceUnavailableException } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Customers } from '../customer/customers.js';
import { CustomerEvents } from '../feed/customer-events.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Database } from '../platform/database/database.js';
import { SessionEndings } from '../session/session-endings.js';
import { CustomerDataParticipants } from './customer-data-participants.js';

/**
 * After so many errors of an unavailable database, each after up to a second, or of an extension that does not respond,
 * each after a minute, the purge does not try other customers.
 */
const MAX_UNAVAILABLE_CUSTOMERS = 3;

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
   * One transaction deletes everything but the customer's row, which it marks. Then the extensions delete their data,
   * and the row goes last. A repetition, or the purge, continues after a failure.
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
    await this.participants.onErase(entityId);
    await this.customers.deleteErased([entityId]);
  }

  /**
   * Erases customers of a suspended organization in the background. All their tokens have ended, so verifiers need no
   * entries, and there is no audit event for each customer.
   *
   * @param lock what the transaction locks first
   * @returns the number of customers that failed
   */
  async eraseOfSuspended(entityIds: string[], lock: (manager: EntityManager) => Promise<void>): Promise<number> {
    await this.database.transaction(async (manager) => {
      await lock(manager);
      await this.customers.eraseAllIn(manager, entityIds);
      await this.endings.deleteAllIn(manager, entityIds);
    });
    return this.finishErasures(entityIds);
  }

  /**
   * Finishes the erasure of customers in a purge. An error of one customer is logged only, and the next purge tries
   * again.
   *
   * @returns the number of customers that failed
   * @throws Error if the database or an extension was unavailable for several customers
   */
  async finishErasures(entityIds: string[]): Promise<number> {
    const finished: string[] = [];
    let [unavailableCount, outage]: [number, unknown] = [0, undefined];
    for (const id of entityIds)
      try {
        await this.participants.onErase(id);
        finished.push(id);
      } catch (error) {
        // a request would get 503, whose text does not say what has failed
        const cause = error instanceof OAuthError ? error.cause : error;
        if (isOutage(cause) && ++unavailableCount === MAX_UNAVAILABLE_CUSTOMERS) {
          outage = cause;
          break;
        }
        this.logFailure(id, cause);
      }
    const deletedCount = await this.deleteRows(finished);
    if (outage) throw outage;
    return entityIds.length - deletedCount;
  }

  /** Deletes the rows together, or one by one if that fails. @returns the number of customers whose rows are deleted */
  private async deleteRows(entityIds: string[]): Promise<number> {
    try {
      await this.customers.deleteErased(entityIds);
      return entityIds.length;
    } catch (error) {
      if (isOutage(error)) throw error;
      let deletedCount = 0;
      for (const id of entityIds)
        await this.customers.deleteErased([id]).then(
          () => deletedCount++,
          (error) => this.logFailure(id, error),
        );
      return deletedCount;
    }
  }

  /** @param error of an extension, which may throw any value */
  private logFailure(entityId: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.logger.warn(`the data of customer ${entityId} is not deleted; the service tries again: ${message}`);
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof ServiceUnavailableException;
}
