import type { errors, JWTPayload } from 'jose';
import type { InactiveReason } from '../access-token/inactive-reason.js';

const BY_CODE: Record<string, InactiveReason> = {
  ERR_JWT_EXPIRED: 'expired',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'rejected_claim',
  ERR_JOSE_ALG_NOT_ALLOWED: 'rejected_claim',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'invalid_signature',
  ERR_JWKS_NO_MATCHING_KEY: 'unknown_key',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'unknown_key',
};
const BY_CLAIM: Record<string, InactiveReason> = { aud: 'other_audience', nbf: 'not_yet_valid', iat: 'not_yet_valid' };

/** What an error of jose says about a token of a trusted issuer. */
interface Rejection {
  inactiveReason: InactiveReason;
  /** Present if the signature is valid, because jose checks the claims after the signature. */
  payload?: JWTPayload;
}

/** Why `jwtVerify` of jose rejects a token of a trusted issuer. */
export function rejectionOf(error: unknown): Rejection {
  const { code, claim = '', payload } = error as Partial<errors.JWTClaimValidationFailed>;
  const inactiveReason = BY_CLAIM[claim] ?? BY_CODE[code ?? ''] ?? 'malformed';
  return payload === undefined ? { inactiveReason } : { inactiveReason, payload };
}
