import type { EntityRow } from '../platform/database/entity-row.js';
import { insertIgnoreStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { OrganizationUser } from './organization-user.entity.js';

/** A row of a user, with the generation of its customer. */
export interface UserRow extends EntityRow<OrganizationUser, 'entity_id' | 'user_hash' | 'linked_by'> {
  /** `null` if the customer was erased. Its erasure deletes the row of the user afterwards. */
  generation: number | null;
}

const USER_ROWS = {
  columns: ['known.entity_id', 'known.user_hash', 'known.linked_by', 'customer.generation'],
  from: `organization_user known
    LEFT JOIN customer ON customer.entity_id = known.entity_id AND customer.erased_at IS NULL
    WHERE known.organization_id = ? AND known.user_hash = ?`,
};

export const FIND_USER = selectStatement<[organizationId: string, userHash: string], UserRow>({
  ...USER_ROWS,
  batch: true,
});

export const FIND_USER_AND_BROWSER_CUSTOMER = selectStatement<
  [organizationId: string, userHash: string, browserCustomerId: string],
  UserRow
>(
  `SELECT ${USER_ROWS.columns.join(', ')} FROM ${USER_ROWS.from} UNION ALL
    SELECT entity_id, NULL, linked_by, NULL FROM organization_user WHERE entity_id = ?`,
);

export const INSERT_USER = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'user_hash', 'customer_id', 'linked_by', 'linked_at'],
});

/** Deletes the row of a user whose customer was erased, if the erasure has not done so yet. */
export const DELETE_USER = writeStatement<[entityId: string, userHash: string]>(
  'DELETE FROM organization_user WHERE entity_id = ? AND user_hash = ?',
);
