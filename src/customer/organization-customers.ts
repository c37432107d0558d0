import { Injectable } from '@nestjs/common';
import { MoreThan } from 'typeorm';
import { MAX_PAGE_ENTRIES } from '../oauth/pages.js';
import { Database } from '../platform/database/database.js';
import { selectStatement } from '../platform/database/statement.js';
import { CustomerEntity } from './customer.entity.js';
import { CUSTOMER_COLUMNS, type CustomerRow } from './customers.js';

/** More are not counted, because the count has the time of one statement. */
const MAX_COUNTED_CUSTOMERS = 100_000;

/** One more than a page can have, so that a full page knows whether a customer follows. */
const FIND_PAGE = selectStatement<[organizationId: string, after: string], CustomerRow>(
  `SELECT ${CUSTOMER_COLUMNS.join(', ')} FROM customer
    WHERE organization_id = ? AND entity_id > ? AND erased_at IS NULL
    ORDER BY entity_id LIMIT ${MAX_PAGE_ENTRIES + 1}`,
);

const COUNT = selectStatement<[organizationId: string], { count: number }>(
  `SELECT COUNT(*) AS count
    FROM (SELECT 1 FROM customer WHERE organization_id = ? LIMIT ${MAX_COUNTED_CUSTOMERS}) AS counted`,
);

/** The customers of an organization, by the index on both ids. */
@Injectable()
export class OrganizationCustomers {
  constructor(private readonly database: Database) {}

  /** At most 201 customers after an id, in the order of their ids, without those that are being erased. */
  page(organizationId: string, after: string): Promise<CustomerRow[]> {
    return this.database.select(FIND_PAGE, [organizationId, after]);
  }

  /** The ids of customers after an id, in their order, also of those that are being erased. */
  async ids(organizationId: string, after: string, limit: number): Promise<string[]> {
    const where = { organizationId, entityId: MoreThan(after) };
    const options = { select: { entityId: true }, order: { entityId: 'ASC' }, take: limit } as const;
    const rows = await this.database.manager.find(CustomerEntity, { ...options, where });
    return rows.map(({ entityId }) => entityId);
  }

  /** The number of the customers, at most 100,000, also of those that are being erased. */
  async count(organizationId: string): Promise<number> {
    return Number((await this.database.select(COUNT, [organizationId]))[0]?.count);
  }
}
