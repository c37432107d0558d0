import { Injectable } from '@nestjs/common';
import { timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import type { CustomerEvent, EventKind } from './customer-event.entity.js';
import { FeedPages } from './feed-pages.js';
import { ROWS_PER_PAGE } from './feed-store.js';

/** An event as consumers get it (protocol §7.8). */
export interface PublishedEvent {
  id: string;
  kind: EventKind;
  organization_id: string;
  /** The customer, except of `customer.linked`. */
  entity_id?: string;
  /** Only of `customer.linked`: the visitor's customer, and the user's customer to which it was linked. */
  from?: string;
  into?: string;
  time: string;
}

const COLUMNS = ['position', 'id', 'kind', 'organization_id', 'customer_id', 'into_id', 'created_at'] as const;

type EventRow = EntityRow<CustomerEvent, (typeof COLUMNS)[number]>;

const READ_PAGE = selectStatement<[after: number, now: Date], EventRow>({
  columns: COLUMNS,
  from: `customer_event WHERE position > ? AND expires_at > ? ORDER BY position, id LIMIT ${ROWS_PER_PAGE}`,
  batch: true,
});

/** The pages of the events of customers. */
@Injectable()
export class EventPages extends FeedPages<EventRow, PublishedEvent> {
  protected readRows(after: number, now: number): Promise<EventRow[]> {
    return this.database.select(READ_PAGE, [after, new Date(now)]);
  }

  protected entryOf({ id, kind, organization_id, customer_id, into_id, created_at }: EventRow): PublishedEvent {
    const customer = into_id === null ? { entity_id: customer_id } : { from: customer_id, into: into_id };
    return { id, kind, organization_id, ...customer, time: new Date(timeOf(created_at)).toISOString() };
  }
}
