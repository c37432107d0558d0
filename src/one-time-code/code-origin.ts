import { type RevocableClaims, revocableIds, type TokenLineage } from '../access-token/token-lineage.js';
import type { EntityRow, NotNull } from '../platform/database/entity-row.js';
import type { OneTimeCode } from './one-time-code.entity.js';

/**
 * What a code comes from, as it is stored with the code. Processes of release 1 read the four claims of the bearer, so
 * these keep their names.
 */
interface StoredOrigin extends Pick<RevocableClaims, 'jti' | 'sub' | 'client_id' | 'iat'> {
  /** Absent in codes of release 1. */
  lineage?: TokenLineage;
  /** Seconds since 1970; absent in codes of release 1. */
  issued_at?: number;
}

/** Release 1 knows a trusted issuer's token by a SHA-256. The agents of such an issuer have no generation here. */
const OF_TRUSTED_ISSUER = /^[0-9a-f]{64}$/;

/** The columns of a code by which it ends. */
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
  const act = sub === subject ? undefined : { sub, client_id, ...(!OF_TRUSTED_ISSUER.test(jti) && { gen: 0 }) };
  return { gen: 0, ancestors: revocableIds(jti), ...(act && { act }) };
}

/** When access was granted, in milliseconds since 1970. */
export function grantedAt({ made_with }: CodeOwner): number {
  const { issued_at, iat } = readOrigin(made_with);
  return (issued_at ?? iat) * 1000;
}

/** The code in the form in which the denylist decides about a token: it ends with what it comes from. */
export function revocableClaims(code: CodeOwner): RevocableClaims {
  const { kind, subject: sub, client_id } = code;
  const { jti } = readOrigin(code.made_with);
  const aud = kind === 'transfer' ? 'customer-api' : 'agent-api';
  return { jti, sub, client_id, iat: grantedAt(code) / 1000, aud, ...lineageOf(code) };
}

function readOrigin(madeWith: string): StoredOrigin {
  return JSON.parse(madeWith);
}
