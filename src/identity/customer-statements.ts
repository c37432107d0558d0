import type { EntityRow } from '../platform/database/entity-row.js';
import { insertIgnoreStatement, insertStatement, selectStatement } from '../platform/database/statement.js';
import { CustomerIdentity } from './customer-identity.entity.js';

export const FIND_OF_BROWSER = selectStatement<
  [browserId: string, organizationId: string, groupId: string],
  EntityRow<CustomerIdentity, 'entity_id' | 'generation'>
>({
  columns: ['entity_id', 'generation'],
  from: 'customer_identity WHERE browser_id = ? AND organization_id = ? AND group_id = ?',
  batch: true,
});

export const FIND = selectStatement<
  [entityId: string, organizationId: string],
  EntityRow<CustomerIdentity, 'generation'>
>({
  columns: ['generation'],
  from: 'customer_identity WHERE entity_id = ? AND organization_id = ?',
  batch: true,
});

export const FIND_GENERATION = selectStatement<
  [entityId: string],
  EntityRow<CustomerIdentity, 'organization_id' | 'generation'>
>({
  columns: ['organization_id', 'generation'],
  from: 'customer_identity WHERE entity_id = ?',
  batch: true,
});

const NEW_ROW = {
  into: CustomerIdentity,
  columns: ['entity_id', 'browser_id', 'organization_id', 'group_id', 'secret_hash', 'last_seen_day', 'created_at'],
} as const;

export const INSERT = insertStatement({ ...NEW_ROW, batch: true });
export const INSERT_IF_ABSENT = insertIgnoreStatement(NEW_ROW);
