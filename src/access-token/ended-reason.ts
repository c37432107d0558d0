import type { SqlValue } from '../platform/database/sql-value.js';
import { type SelectStatement, selectStatement } from '../platform/database/statement.js';
import { agentOf, revocationRows, revocationValues } from './ended-statement.js';
import type { InactiveReason } from './inactive-reason.js';
import { familyOf, type RevocableClaims } from './token-lineage.js';

/** A condition that has ended a token: a revocation, or a customer or agent with a higher generation. */
interface EndingRow {
  kind: 'jti' | 'family' | 'client' | 'customer' | 'agent';
  value: string;
}

/** The first reason in this list is reported, because it says the most about the event that ended the token. */
const BY_PRECEDENCE = [
  'revoked',
  'family_revoked',
  'ancestor_revoked',
  'client_revoked',
  'customer_generation',
  'agent_generation',
] as const satisfies InactiveReason[];

/**
 * Selects every condition that has ended a token. Only for a token that has ended, so it is neither batched nor fast.
 */
export function endingRowsStatement(claims: RevocableClaims): {
  statement: SelectStatement<SqlValue[], EndingRow>;
  parameters: SqlValue[];
} {
  const { sub, gen = 0 } = claims;
  const agent = agentOf(claims) ?? { sub, gen: Number.MAX_SAFE_INTEGER };
  const { ids, values } = revocationValues(claims);
  const statement = selectStatement<SqlValue[], EndingRow>(
    `SELECT kind, value ${revocationRows(ids)}
      UNION ALL SELECT 'customer', entity_id FROM customer WHERE entity_id = ? AND generation > ?
      UNION ALL SELECT 'agent', id FROM agent WHERE id = ? AND generation > ?`,
  );
  return { statement, parameters: [...values, sub, gen, agent.sub, agent.gen] };
}

/** Why a token has ended. Without a row, its agent has no row either, or the revocation was deleted meanwhile. */
export function reasonOf(rows: EndingRow[], claims: RevocableClaims): InactiveReason {
  const reasons = new Set(rows.map((row) => reasonOfRow(row, claims)));
  return BY_PRECEDENCE.find((reason) => reasons.has(reason)) ?? (agentOf(claims) ? 'agent_deleted' : 'revoked');
}

function reasonOfRow({ kind, value }: EndingRow, { jti }: RevocableClaims): InactiveReason {
  if (kind === 'client') return 'client_revoked';
  if (kind === 'customer') return 'customer_generation';
  if (kind === 'agent') return 'agent_generation';
  if (value !== jti && value !== familyOf(jti)) return 'ancestor_revoked';
  return kind === 'jti' && value === jti ? 'revoked' : 'family_revoked';
}
