import type { ColumnValues, EntityRow } from '../platform/database/entity-row.js';
import { insertStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { CONTENT_COLUMNS } from './family-content.js';
import { RefreshFamily } from './refresh-family.entity.js';
import { RefreshFamilyAncestor } from './refresh-family-ancestor.entity.js';

/** The number of rotations of a family in one hour (protocol §3.9). */
const MAX_ROTATIONS_PER_HOUR = 60;

const FAMILY_COLUMNS = [
  ...CONTENT_COLUMNS,
  'current_hash',
  'previous_hash',
  'successor_nonce',
  'rotated_network',
  'ended_at',
  'expires_at',
] as const;

export type FamilyRow = EntityRow<RefreshFamily, (typeof FAMILY_COLUMNS)[number]> & {
  /** Milliseconds since the last rotation, by the clock of the database. */
  rotated_for: number;
};

export const FIND_FAMILY = selectStatement<[familyHash: string], FamilyRow>({
  columns: [...FAMILY_COLUMNS, ({ millisecondsSince }) => `${millisecondsSince('rotated_at')} AS rotated_for`],
  from: 'refresh_family WHERE family_hash = ?',
  batch: true,
});

const NEW_COLUMNS = [
  'id',
  'family_hash',
  'client_id',
  'agent_id',
  'customer_id',
  'organization_id',
  'scope',
  'lineage',
  'root',
  'generation',
  'begun_at',
  'current_hash',
  'rotated_at',
  'rotated_hour',
  'rotations',
  'expires_at',
] as const;

export type NewFamilyRow = ColumnValues<RefreshFamily, typeof NEW_COLUMNS>;

export const INSERT_FAMILY = insertStatement({ into: RefreshFamily, columns: NEW_COLUMNS, batch: true });

export const INSERT_ANCESTOR = insertStatement({
  into: RefreshFamilyAncestor,
  columns: ['family_id', 'ancestor_id'],
});

/**
 * One of several parallel uses of the current token matches the row. `rotations` comes before `rotated_hour`, because
 * MySQL assigns from left to right.
 */
export const ROTATE = writeStatement<
  [
    nextHash: string,
    usedHash: string,
    nonce: string,
    network: string | null,
    hour: number,
    hour: number,
    expiresAt: Date,
    id: string,
    usedHash: string,
    now: Date,
    hour: number,
  ]
>(
  ({ now }) => `UPDATE refresh_family
    SET current_hash = ?, previous_hash = ?, successor_nonce = ?, rotated_network = ?, rotated_at = ${now},
      rotations = CASE WHEN rotated_hour = ? THEN rotations + 1 ELSE 1 END, rotated_hour = ?, expires_at = ?
    WHERE id = ? AND current_hash = ? AND ended_at IS NULL AND expires_at > ?
      AND (rotated_hour <> ? OR rotations < ${MAX_ROTATIONS_PER_HOUR})`,
);

export const END_FAMILY = writeStatement<[now: Date, id: string]>(
  'UPDATE refresh_family SET ended_at = COALESCE(ended_at, ?) WHERE id = ?',
);
