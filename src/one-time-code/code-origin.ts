import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import type { EntityRow, NotNull } from '../platform/database/statement.js';
import type { OneTimeCode } from './one-time-code.entity.js';

/** The origin of a code, stored as JSON in the column `made_with`. */
interface StoredOrigin {
  /** Of the bearer that created the code. */
  jti: string;
  lineage: TokenLineage;
  /** Seconds since 1970. */
  issued_at: number;
}

/** A code that matches its proof and is not redeemed yet. */
export interface RedeemableCode {
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  clientId: string;
  lineage: TokenLineage;
  /** Whether the code was created with a `code_challenge`. */
  hasChallenge: boolean;
  /** The last day that is noted for a token of the customer; `null` if it needs no note. */
  tokenDay: number | null;
}

/** The columns of a code that decide whether it has ended. */
export type CodeOwner = NotNull<EntityRow<OneTimeCode, 'kind' | 'client_id' | 'subject' | 'made_with'>>;

export function storedOrigin(bearer: RevocableClaims, lineage: TokenLineage, issuedAt: number): string {
  const origin: StoredOrigin = { jti: bearer.jti, lineage, issued_at: issuedAt };
  return JSON.stringify(origin);
}

/** The lineage of the token that a code gives. */
export function lineageOf({ made_with }: CodeOwner): TokenLineage {
  return readOrigin(made_with).lineage;
}

/** When access was granted, in milliseconds since 1970. */
export function grantedAt({ made_with }: CodeOwner): number {
  return readOrigin(made_with).issued_at * 1000;
}

/** The code as claims that the denylist can check, because a code ends with its origin. */
export function revocableClaims(code: CodeOwner): RevocableClaims {
  const { kind, subject: sub, client_id } = code;
  const { jti } = readOrigin(code.made_with);
  const aud = kind === 'transfer' ? 'customer-api' : 'agent-api';
  return { jti, sub, client_id, iat: grantedAt(code) / 1000, aud, ...lineageOf(code) };
}

export function redeemableCode(
  code: CodeOwner & EntityRow<OneTimeCode, 'organization_id' | 'code_challenge'> & { token_day: number | null },
): RedeemableCode {
  const { subject, organization_id: organizationId, client_id: clientId, code_challenge, token_day: tokenDay } = code;
  return {
    subject,
    organizationId,
    clientId,
    lineage: lineageOf(code),
    hasChallenge: code_challenge !== null,
    tokenDay,
  };
}

function readOrigin(madeWith: string): StoredOrigin {
  return JSON.parse(madeWith);
}
