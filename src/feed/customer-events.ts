import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock, DAY_MS } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { portionsOf } from '../platform/database/value-list.js';
import { uuidv7 } from '../platform/uuid.js';
import { CustomerEvent, type EventKind } from './customer-event.entity.js';

/** The number of events that an export has. Only a user with as many linked customers in EVENT_DAYS has more. */
const MAX_EXPORTED_ROWS = 1_000;

/** The customer of an event. */
interface EventCustomer {
  organizationId: string;
  entityId: string;
}

/**
 * Writes the events of customers in the transactions of the changes, which have locked the rows of the customers
 * (protocol §7.8). `feed-publisher.ts` gives them their positions.
 */
@Injectable()
export class CustomerEvents {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
  ) {}

  /** A visitor's customer was linked to a user's. */
  async linkedIn(manager: EntityManager, visitor: EventCustomer, userId: string): Promise<void> {
    await this.insertIn(manager, 'customer.linked', [visitor], userId);
  }

  /** A visitor's customer became a user's. */
  async becameUserIn(manager: EntityManager, customer: EventCustomer): Promise<void> {
    await this.insertIn(manager, 'customer.became_user', [customer]);
  }

  /** The event replaces earlier ones, so that callers that end sessions again and again do not fill the table. */
  async sessionsEndedIn(manager: EntityManager, customer: EventCustomer): Promise<void> {
    const kind = 'customer.sessions_ended';
    await manager.delete(CustomerEvent, { customerId: customer.entityId, kind });
    await this.insertIn(manager, kind, [customer]);
  }

  /**
   * The event replaces all earlier ones that name the customer. A consumer that has not read that a visitor's customer
   * was linked to this one would not know that the conversations of the visitor are erased too, so it gets an event for
   * them.
   */
  async erasedIn(manager: EntityManager, customer: EventCustomer): Promise<void> {
    const { organizationId, entityId } = customer;
    const linked = await manager.find(CustomerEvent, { select: { customerId: true }, where: { intoId: entityId } });
    await manager.delete(CustomerEvent, { intoId: entityId });
    await manager.delete(CustomerEvent, { customerId: entityId });
    const visitors = linked.map(({ customerId }) => ({ organizationId, entityId: customerId }));
    await this.insertIn(manager, 'customer.erased', [customer, ...visitors]);
  }

  /** The last events that name a customer, for an export, and whether there are more. */
  async exportRows(entityId: string): Promise<{ rows: object[]; truncated: boolean }> {
    const rows = await this.database.manager.find(CustomerEvent, {
      where: [{ customerId: entityId }, { intoId: entityId }],
      order: { id: 'DESC' },
      take: MAX_EXPORTED_ROWS + 1,
    });
    const exported = rows
      .slice(0, MAX_EXPORTED_ROWS)
      .map(({ id, kind, organizationId, customerId, intoId, ...row }) => ({
        ...{ id, kind, organization_id: organizationId, customer_id: customerId, into_id: intoId },
        created_at: row.createdAt.toISOString(),
        expires_at: row.expiresAt.toISOString(),
      }));
    return { rows: exported, truncated: rows.length > MAX_EXPORTED_ROWS };
  }

  private async insertIn(
    manager: EntityManager,
    kind: EventKind,
    customers: EventCustomer[],
    intoId: string | null = null,
  ): Promise<void> {
    const now = this.clock.now();
    const [createdAt, expiresAt] = [new Date(now), new Date(now + this.configuration.EVENT_DAYS * DAY_MS)];
    const rows = customers.map(({ organizationId, entityId }) => ({
      ...{ id: uuidv7(now), kind, organizationId, customerId: entityId, intoId, createdAt, expiresAt, position: null },
    }));
    for (const portion of portionsOf(rows)) await manager.insert(CustomerEvent, portion);
  }
}
