import type { EntityRow } from '../platform/database/entity-row.js';
import { insertStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { CONTENT_COLUMNS } from './family-content.js';
import { RefreshFamily } from './refresh-family.entity.js';
import { RefreshFamilyAncestor } from './refresh-family-ancestor.entity.js';
import { RefreshToken } from './refresh-token.entity.js';

const FAMILY_COLUMNS = [
  ...CONTENT_COLUMNS,
  'current_hash',
  'previous_hash',
  'ended_at',
  'expires_at',
  'rotated_network',
] as const;

/** A refresh family, found by any of its tokens. `replaced_at` is the column of that token. */
export type FamilyRow = EntityRow<RefreshFamily, (typeof FAMILY_COLUMNS)[number]> &
  EntityRow<RefreshToken, 'replaced_at'> & {
    /** Milliseconds since the last rotation, by the clock of the database. */
    rotated_for: number;
  };

export const FIND_FAMILY = selectStatement<[tokenHash: string], FamilyRow>({
  columns: [
    ...FAMILY_COLUMNS.map((column) => `family.${column}`),
    ({ millisecondsSince }) => `${millisecondsSince('family.rotated_at')} AS rotated_for`,
    'token.replaced_at',
  ],
  from: 'refresh_token token JOIN refresh_family family ON family.id = token.family_id WHERE token.hash = ?',
  batch: true,
});

export const INSERT_TOKEN = insertStatement({
  into: RefreshToken,
  columns: ['hash', 'family_id', 'expires_at'],
  batch: true,
});

export const INSERT_FAMILY = insertStatement({
  into: RefreshFamily,
  columns: [
    'id',
    'client_id',
    'agent_id',
    'customer_id',
    'organization_id',
    'scope',
    'lineage',
    'current_hash',
    'begun_at',
    'rotated_at',
    'expires_at',
    'generation',
  ],
  batch: true,
});

export const INSERT_ANCESTOR = insertStatement({
  into: RefreshFamilyAncestor,
  columns: ['family_id', 'ancestor_id'],
  batch: true,
});

/** Matches the state that was read, or the state that this attempt wrote. One of several parallel attempts matches. */
const IF_UNCHANGED = 'WHERE id = ? AND current_hash IN (?, ?) AND ended_at IS NULL AND expires_at > ?';
type State = [id: string, currentHash: string, nextHash: string, now: Date];

export const ROTATE = writeStatement<
  [nextHash: string, usedHash: string, network: string | null, expiresAt: Date, ...State]
>(
  ({ now }) => `UPDATE refresh_family
    SET current_hash = ?, previous_hash = ?, rotated_network = ?, rotated_at = ${now}, expires_at = ? ${IF_UNCHANGED}`,
);

export const RETRY_ROTATION = writeStatement<[nextHash: string, expiresAt: Date, ...State]>(
  `UPDATE refresh_family SET current_hash = ?, expires_at = ? ${IF_UNCHANGED}`,
);

export const SET_REPLACED = writeStatement<[hash: string]>(
  ({ now }) => `UPDATE refresh_token SET replaced_at = COALESCE(replaced_at, ${now}) WHERE hash = ?`,
);

export const END_FAMILY = writeStatement<[now: Date, id: string]>(
  'UPDATE refresh_family SET ended_at = COALESCE(ended_at, ?) WHERE id = ?',
);
