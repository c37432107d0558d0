import { type RevocableClaims, revocableIds, type TokenLineage } from '../access-token/token-lineage.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import type { OneTimeCode } from './one-time-code.entity.js';
import type { RedeemableCode } from './redemption.js';

/**
 * The origin of a code, stored as JSON in the column `made_with`. The four claims of the bearer keep their names,
 * because processes of release 1 read them.
 */
interface StoredOrigin extends Pick<RevocableClaims, 'jti' | 'sub' | 'client_id' | 'iat'> {
  /** Absent in codes of release 1. */
  lineage?: TokenLineage;
  /** Seconds since 1970; absent in codes of release 1. */
  issued_at?: number;
}

/** The `jti` of a trusted issuer's token in release 1: a SHA-256. Agents of such an issuer have no generation. */
const TRUSTED_ISSUER_JTI = /^[0-9a-f]{64}$/;

/** The columns of a code that decide whether it has ended. */
export type CodeOwner = NotNull<EntityRow<OneTimeCode, 'kind' | 'client_id' | 'subject' | 'made_with'>>;

export function storedOrigin(bearer: RevocableClaims, lineage: TokenLineage, issuedAt: number): string {
  const { jti, sub, client_id, iat } = bearer;
  const origin: StoredOrigin = { jti, sub, client_id, iat, lineage, issued_at: issuedAt };
  return JSON.stringify(origin);
}

/** The lineage of the token that a code gives. */
export function lineageOf({ subject, made_with }: CodeOwner): TokenLineage {
  const { lineage, jti, sub, client_id } = readOrigin(made_with);
  if (lineage) return lineage;
  const act = sub === subject ? undefined : { sub, client_id, ...(!TRUSTED_ISSUER_JTI.test(jti) && { gen: 0 }) };
  return { gen: 0, ancestors: revocableIds(jti), ...(act && { act }) };
}

/** When access was granted, in milliseconds since 1970. */
export function grantedAt({ made_with }: CodeOwner): number {
  const { issued_at, iat } = readOrigin(made_with);
  return (issued_at ?? iat) * 1000;
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
