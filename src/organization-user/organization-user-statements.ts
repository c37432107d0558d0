import type { EntityRow } from '../platform/database/entity-row.js';
import { insertIgnoreStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { OrganizationUser } from './organization-user.entity.js';

/** A row of a user, with the generation of its customer. */
export interface UserRow extends EntityRow<OrganizationUser, 'entity_id' | 'user_hash' | 'linked_by' | 'settled_at'> {
  /** The generation of the customer. `null` is 0, or the customer does not exist yet. */
  generation: number | null;
  /** 1 if the customer is erased. Its erasure deletes the row of the user afterwards. */
  is_erased: number;
}

const USER_ROWS = {
  columns: [
    'known.entity_id',
    'known.user_hash',
    'known.linked_by',
    'known.settled_at',
    'customer.generation',
    '(customer.entity_id IS NOT NULL AND customer.organization_id IS NULL) AS is_erased',
  ],
  from: `organization_user known LEFT JOIN customer_identity customer ON customer.entity_id = known.entity_id
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
    SELECT entity_id, NULL, linked_by, settled_at, NULL, 0 FROM organization_user WHERE entity_id = ?`,
);

export const INSERT_USER = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'user_hash', 'customer_id', 'linked_by', 'linked_at'],
});

export const INSERT_LINK = insertIgnoreStatement({
  into: OrganizationUser,
  columns: ['entity_id', 'organization_id', 'customer_id', 'linked_by', 'linked_at', 'settled_at'],
});

/**
 * Records that the customer of a user exists. Of several attempts one matches the row: the one that completed the user.
 * A retry of that attempt's statement matches again.
 */
export const SETTLE_USER = writeStatement<
  [now: Date, attempt: string, entityId: string, userHash: string, attempt: string]
>(`UPDATE organization_user SET settled_at = COALESCE(settled_at, ?), linked_by = ?
  WHERE entity_id = ? AND user_hash = ? AND (settled_at IS NULL OR linked_by = ?)`);

/** Deletes a row if the same attempt inserted it. */
export const DELETE_OWN = writeStatement<[entityId: string, attempt: string]>(
  'DELETE FROM organization_user WHERE entity_id = ? AND linked_by = ?',
);

export const FIND_OWN = selectStatement<[entityId: string, attempt: string], unknown>({
  columns: ['1'],
  from: 'organization_user WHERE entity_id = ? AND linked_by = ?',
  batch: true,
});
