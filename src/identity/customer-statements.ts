import {
  type ColumnValues,
  type EntityRow,
  insertIgnoreStatement,
  insertStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import type { CustomerCreator, IdentityScope } from './customer.js';
import { CustomerIdentity } from './customer-identity.entity.js';

/**
 * The last day that is noted for a token of a customer, for SELECTs of `customer`. `null` for a customer that no browser
 * created, which is never purged and needs no note. 0 for an erased customer, so that the note fails.
 */
export const TOKEN_DAY = `CASE WHEN erased_at IS NOT NULL THEN 0
  WHEN creator = 'browser' THEN COALESCE(last_token_day, 0) ELSE NULL END`;

/** The value of `TOKEN_DAY`. */
interface TokenDay {
  token_day: number | null;
}

export const NOTE_TOKEN_DAY = writeStatement<[today: number, entityId: string]>(
  'UPDATE customer SET version = version + 1, last_token_day = ? WHERE entity_id = ? AND erased_at IS NULL',
);

export type CustomerRow = EntityRow<CustomerIdentity, 'entity_id' | 'organization_id' | 'group_id' | 'generation'> &
  TokenDay;

/** Also finds an erased customer, which has no group. */
export const FIND_CUSTOMER = selectStatement<[entityId: string], CustomerRow>({
  columns: ['entity_id', 'organization_id', 'group_id', 'generation', `${TOKEN_DAY} AS token_day`],
  from: 'customer WHERE entity_id = ?',
  batch: true,
});

export const CUSTOMER_COLUMNS = [
  'entity_id',
  'organization_id',
  'group_id',
  'creator',
  'generation',
  'link_generation',
  'version',
  'last_token_day',
  'created_at',
] as const;

const NEW_ROW = { into: CustomerIdentity, columns: CUSTOMER_COLUMNS };
export const INSERT_CUSTOMER = insertStatement({ ...NEW_ROW, batch: true });
export const INSERT_CUSTOMER_IF_ABSENT = insertIgnoreStatement(NEW_ROW);

/** The values of a new customer in the order of these columns. */
export function newCustomerRow(
  entityId: string,
  { organizationId, groupId }: IdentityScope,
  creator: CustomerCreator,
  createdAt: number,
  lastTokenDay: number | null = null,
): ColumnValues<CustomerIdentity, typeof CUSTOMER_COLUMNS> {
  return [entityId, organizationId, groupId, creator, 0, 0, 0, lastTokenDay, new Date(createdAt)];
}

/** A value of a customer, for statements on other tables. */
export const valueOfCustomer = (value: string, customerId: string) =>
  `(SELECT ${value} FROM customer WHERE customer.entity_id = ${customerId})`;

/** Joins the customer, for statements on other tables. */
export const joinCustomer = (customerId: string) => `JOIN customer ON customer.entity_id = ${customerId}`;

/** Whether what a token of a customer gave has not ended by a higher generation, for statements on other tables. */
export const isOfCurrentGeneration = (customerId: string, generation: string) =>
  `EXISTS (SELECT 1 FROM customer WHERE customer.entity_id = ${customerId} AND customer.generation <= ${generation})`;
