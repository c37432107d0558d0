import {
  type ColumnValues,
  type EntityRow,
  insertIgnoreStatement,
  insertStatement,
  type NotNull,
  selectStatement,
} from '../platform/database/statement.js';
import type { IdentityScope } from './customer.js';
import type { CustomerCreator } from './customer-creation.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import { TOKEN_DAY } from './last-token-days.js';

/** The last day that is noted for a token of the customer; `null` for a customer that an agent created. */
interface TokenDay {
  token_day: number | null;
}

export const FIND = selectStatement<
  [entityId: string, organizationId: string],
  NotNull<EntityRow<CustomerIdentity, 'group_id'>> & EntityRow<CustomerIdentity, 'generation'> & TokenDay
>({
  columns: ['group_id', 'generation', `${TOKEN_DAY} AS token_day`],
  from: 'customer WHERE entity_id = ? AND organization_id = ? AND erased_at IS NULL',
  batch: true,
});

export const FIND_CURRENT = selectStatement<
  [entityId: string],
  EntityRow<CustomerIdentity, 'group_id' | 'generation'> & TokenDay
>({
  columns: ['group_id', 'generation', `${TOKEN_DAY} AS token_day`],
  from: 'customer WHERE entity_id = ?',
  batch: true,
});

const NEW_ROW = {
  into: CustomerIdentity,
  columns: [
    'entity_id',
    'organization_id',
    'group_id',
    'creator',
    'generation',
    'link_generation',
    'version',
    'last_token_day',
    'created_at',
  ],
} as const;

export const INSERT_CUSTOMER = insertStatement({ ...NEW_ROW, batch: true });
export const INSERT_CUSTOMER_IF_ABSENT = insertIgnoreStatement(NEW_ROW);

/** The values of a new customer in the order of these columns. */
export function newCustomerRow(
  entityId: string,
  { organizationId, groupId }: IdentityScope,
  creator: CustomerCreator,
  createdAt: number,
  lastTokenDay: number | null = null,
): ColumnValues<CustomerIdentity, (typeof NEW_ROW)['columns']> {
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
