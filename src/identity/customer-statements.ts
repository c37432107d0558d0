import { TOKEN_DAY } from '../access-token/last-token-days.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import { insertIgnoreStatement, insertStatement, selectStatement } from '../platform/database/statement.js';
import { CustomerIdentity } from './customer-identity.entity.js';

/** The last day that is noted for a token of the customer; `null` for a customer that an agent created. */
interface TokenDay {
  token_day: number | null;
}

export const FIND = selectStatement<
  [entityId: string, organizationId: string],
  NotNull<EntityRow<CustomerIdentity, 'group_id'>> &
    EntityRow<CustomerIdentity, 'generation' | 'link_generation'> &
    TokenDay
>({
  columns: ['group_id', 'generation', 'link_generation', `${TOKEN_DAY} AS token_day`],
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

/** Whether what a token of a customer gave has not ended by a higher generation, for statements on other tables. */
export const isOfCurrentGeneration = (customerId: string, generation: string) =>
  `EXISTS (SELECT 1 FROM customer WHERE customer.entity_id = ${customerId} AND customer.generation <= ${generation})`;
