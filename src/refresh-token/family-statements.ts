import type { Audience, RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import { party } from '../audit/audit.js';
import type { AuditEvent } from '../audit/audit-event.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import {
  type ColumnOf,
  columnsOf,
  type EntityRow,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { RefreshFamily } from './refresh-family.entity.js';

/** The access that a refresh family gives. */
export interface RefreshContent {
  /** The agent that granted access, or the customer that stays on a device. */
  owner: { kind: 'agent' | 'customer'; id: string };
  clientId: string;
  organizationId: string;
  /** Scopes separated by spaces; empty for a customer. */
  scope: string;
  /** The lineage of the family's tokens. `gen` is the owner's generation when access was granted. */
  lineage: TokenLineage;
}

export const FAMILY_COLUMNS = columnsOf(RefreshFamily);

export type StoredFamily = EntityRow<RefreshFamily, ColumnOf<RefreshFamily>>;

export function contentOf(row: StoredFamily): RefreshContent {
  const { client_id: clientId, organization_id: organizationId, scope, agent_id, customer_id, generation } = row;
  const owner =
    customer_id === null
      ? ({ kind: 'agent', id: agent_id as string } as const)
      : ({ kind: 'customer', id: customer_id } as const);
  const lineage = { ...(JSON.parse(row.lineage) as Omit<TokenLineage, 'gen'>), gen: generation };
  return { owner, clientId, organizationId, scope, lineage };
}

/** The family as claims that the denylist can check, because a family ends with its owner, client and ancestors. */
export function claimsOfFamily(row: StoredFamily): RevocableClaims & { aud: Audience } {
  const { owner, clientId: client_id, lineage } = contentOf(row);
  const iat = timeOf(row.begun_at) / 1000;
  return { jti: row.id, sub: owner.id, client_id, iat, aud: audienceOf(owner), ...lineage };
}

/** The API that the tokens of a family are for. */
export function audienceOf({ kind }: RefreshContent['owner']): Audience {
  return kind === 'customer' ? 'customer-api' : 'agent-api';
}

/** The audit event of a refresh token. */
export function refreshEvent(
  action: 'issued' | 'redeemed' | 'replayed',
  family: string,
  { owner: subject, clientId, organizationId }: RefreshContent,
): AuditEvent {
  const outcome = action === 'replayed' ? 'failure' : 'success';
  const actor = party('client', clientId);
  return { event: `refresh_token.${action}`, outcome, actor, subject, organizationId, clientId, details: { family } };
}

/** The number of rotations of a family in one hour (protocol §3.9). */
const MAX_ROTATIONS_PER_HOUR = 60;
export const HOUR_MS = 3_600_000;

export type FamilyRow = StoredFamily & {
  /** Milliseconds since the last rotation, by the clock of the database. */
  rotated_for: number;
  /** Milliseconds since the first rotation that is counted, by the clock of the database. */
  counted_for: number;
};

export const FIND_FAMILY = selectStatement<[familyHash: string], FamilyRow>({
  columns: [
    ...FAMILY_COLUMNS,
    ({ millisecondsSince }) => `${millisecondsSince('rotated_at')} AS rotated_for`,
    ({ millisecondsSince }) => `${millisecondsSince('counted_since')} AS counted_for`,
  ],
  from: 'refresh_family WHERE family_hash = ?',
  batch: true,
});

/**
 * One of several parallel uses of the current token matches the row. The clock of the database decides when an hour is
 * over. If it is set back by more than an hour, the count begins again. `rotations` comes before `counted_since`,
 * because MySQL assigns from left to right.
 */
export const ROTATE = writeStatement<
  [
    nextHash: string,
    usedHash: string,
    nonce: string,
    network: string | null,
    expiresAt: Date,
    id: string,
    usedHash: string,
    now: Date,
  ]
>(({ now, millisecondsSince }) => {
  const isNextHour = `(${millisecondsSince('counted_since')} NOT BETWEEN ${-HOUR_MS} AND ${HOUR_MS - 1})`;
  return `UPDATE refresh_family
    SET current_hash = ?, previous_hash = ?, successor_nonce = ?, rotated_network = ?, rotated_at = ${now},
      rotations = CASE WHEN ${isNextHour} THEN 1 ELSE rotations + 1 END,
      counted_since = CASE WHEN ${isNextHour} THEN ${now} ELSE counted_since END, expires_at = ?
    WHERE id = ? AND current_hash = ? AND ended_at IS NULL AND expires_at > ?
      AND (${isNextHour} OR rotations < ${MAX_ROTATIONS_PER_HOUR})`;
});

export const END_FAMILY = writeStatement<[now: Date, id: string]>(
  'UPDATE refresh_family SET ended_at = COALESCE(ended_at, ?) WHERE id = ?',
);
