import { TOKEN_DAY } from '../access-token/last-token-days.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import {
  insertIgnoreStatement,
  insertStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { CustomerIdentity } from './customer-identity.entity.js';

/** The last day that is noted for a token of the customer; `null` for a customer that an agent created. */
interface TokenDay {
  token_day: number | null;
}

/** The customer of a browser's own row, and the browser's secret. */
export const FIND_OF_BROWSER = selectStatement<
  [browserId: string, organizationId: string, groupId: string],
  EntityRow<CustomerIdentity, 'entity_id' | 'generation' | 'secret_hash'>
>({
  columns: ['own.entity_id', 'own.generation', 'browser.secret_hash'],
  from: `customer_identity own JOIN customer_identity browser ON browser.entity_id = own.browser_id
    WHERE own.browser_id = ? AND own.organization_id = ? AND own.group_id = ?
      AND own.unlinked_at IS NULL AND COALESCE(own.link_generation, 0) = 0`,
  batch: true,
});

export const FIND_SECRET = selectStatement<[browserId: string], EntityRow<CustomerIdentity, 'secret_hash'>>({
  columns: ['secret_hash'],
  from: 'customer_identity WHERE entity_id = ?',
  batch: true,
});

export const FIND = selectStatement<
  [entityId: string, organizationId: string],
  NotNull<EntityRow<CustomerIdentity, 'group_id'>> & EntityRow<CustomerIdentity, 'generation'> & TokenDay
>({
  columns: ['group_id', 'generation', `${TOKEN_DAY} AS token_day`],
  from: 'customer_identity WHERE entity_id = ? AND organization_id = ?',
  batch: true,
});

/** The group of a customer, and its generation of links. */
export const FIND_SCOPE = selectStatement<
  [entityId: string, organizationId: string],
  NotNull<EntityRow<CustomerIdentity, 'group_id'>> & EntityRow<CustomerIdentity, 'link_generation'>
>({
  columns: ['group_id', 'link_generation'],
  from: 'customer_identity WHERE entity_id = ? AND organization_id = ?',
  batch: true,
});

export const FIND_CURRENT = selectStatement<
  [entityId: string],
  EntityRow<CustomerIdentity, 'group_id' | 'generation'> & TokenDay
>({
  columns: ['group_id', 'generation', `${TOKEN_DAY} AS token_day`],
  from: 'customer_identity WHERE entity_id = ?',
  batch: true,
});

const NEW_ROW = {
  into: CustomerIdentity,
  columns: [
    'entity_id',
    'browser_id',
    'organization_id',
    'group_id',
    'secret_hash',
    'last_seen_day',
    'scope_seen_day',
    'created_at',
  ],
} as const;

export const INSERT = insertStatement({ ...NEW_ROW, batch: true });
export const INSERT_IF_ABSENT = insertIgnoreStatement(NEW_ROW);

/** Deletes a customer that no response has named. */
export const DELETE_CUSTOMER = writeStatement<[entityId: string]>('DELETE FROM customer_identity WHERE entity_id = ?');
