import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import type { EntityRow, NotNull } from '../platform/database/statement.js';
import type { OneTimeCode } from './one-time-code.entity.js';

/** The origin of a code, stored as JSON in the column `made_with`. */
export interface StoredOrigin {
  /** The `jti` of the bearer that created the code. */
  jti: string;
  lineage: TokenLineage;
  /** Seconds since 1970. */
  issued_at: number;
}

/** A code that matches its proof. */
export interface RedeemableCode {
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  clientId: string;
  scope: string | null;
  /** The group of the customer of a transfer token; the empty string if there is none. */
  groupId: string;
  /** The lineage of the token that the code gives. */
  lineage: TokenLineage;
  /** When access was granted, in milliseconds since 1970. */
  grantedAt: number;
  /** Whether the code was created with a `code_challenge`. */
  hasChallenge: boolean;
}

/** The columns of a code that decide whether it has ended. */
export type CodeOwner = NotNull<EntityRow<OneTimeCode, 'kind' | 'client_id' | 'subject' | 'made_with'>>;

/** The code as claims that the denylist can check, because a code ends with its origin. */
export function revocableClaims({ kind, subject: sub, client_id, made_with }: CodeOwner): RevocableClaims {
  const { jti, lineage, issued_at: iat }: StoredOrigin = JSON.parse(made_with);
  return { jti, sub, client_id, iat, aud: kind === 'transfer' ? 'customer-api' : 'agent-api', ...lineage };
}

export function redeemableCode(
  row: CodeOwner & EntityRow<OneTimeCode, 'organization_id' | 'scope' | 'code_challenge'> & { group_id: string | null },
): RedeemableCode {
  const { subject, organization_id: organizationId, client_id: clientId, scope } = row;
  const { lineage, issued_at }: StoredOrigin = JSON.parse(row.made_with);
  return {
    ...{ subject, organizationId, clientId, scope, groupId: row.group_id ?? '', lineage },
    ...{ grantedAt: issued_at * 1000, hasChallenge: row.code_challenge !== null },
  };
}
