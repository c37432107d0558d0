import type { RevocableClaims } from '../access-token/token-claims.js';
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
  /** The agent that granted access. */
  agentId: string;
  clientId: string;
  organizationId: string;
  /** Scopes separated by spaces. */
  scope: string;
  /** The generation of the agent when access was granted. */
  generation: number;
}

export const FAMILY_COLUMNS = columnsOf(RefreshFamily);

export type StoredFamily = EntityRow<RefreshFamily, ColumnOf<RefreshFamily>>;

export function contentOf(row: StoredFamily): RefreshContent {
  const { client_id: clientId, organization_id: organizationId, scope, agent_id: agentId, generation } = row;
  return { agentId, clientId, organizationId, scope, generation };
}

/** The family as claims whose ending can be checked, because a family ends with its agent and client. */
export function claimsOfFamily({
  id: jti,
  agent_id: sub,
  client_id,
  begun_at,
  generation: gen,
}: StoredFamily): RevocableClaims {
  return { jti, sub, client_id, iat: timeOf(begun_at) / 1000, aud: 'agent-api', gen };
}

/** The audit event of a refresh token. */
export function refreshEvent(
  action: 'issued' | 'redeemed' | 'replayed',
  family: string,
  { agentId, clientId, organizationId }: RefreshContent,
): AuditEvent {
  const outcome = action === 'replayed' ? 'failure' : 'success';
  const [actor, subject] = [party('client', clientId), party('agent', agentId)];
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
