import { createHash } from 'node:crypto';
import { OAuthError } from '../oauth/oauth-error.js';
import { equalInConstantTime } from '../platform/secret.js';
import type { CodeKind } from './one-time-code.entity.js';
import type { CodeRow } from './stored-codes.js';

/** A `code_challenge` of the method S256: SHA-256 in base64url (RFC 7636 §4.2). */
export const CODE_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
/** A `code_verifier` (RFC 7636 §4.1). */
export const CODE_VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

export interface CodeProof {
  clientId: string;
  redirectUri?: string | undefined;
  codeVerifier?: string | undefined;
}

/** @throws OAuthError `invalid_grant` if the code is unknown or the proof does not match the code (protocol §3.6) */
export function assertProofMatches(row: CodeRow | undefined, kind: CodeKind, proof: CodeProof): asserts row is CodeRow {
  const violation = row ? violationOf(row, kind, proof) : 'unknown';
  if (violation !== undefined) throw OAuthError.invalidGrant(`code: ${violation}`);
}

function violationOf(row: CodeRow, kind: CodeKind, proof: CodeProof): string | undefined {
  if (row.kind !== kind) return 'of another kind';
  if (row.client_id !== proof.clientId) return 'of another client';
  // The redirect URI must be exactly the one of the authorization request (RFC 6749 §4.1.3).
  if (row.redirect_uri !== null && row.redirect_uri !== proof.redirectUri) return 'sent to another redirect_uri';
  if (!isPkceSatisfied(row.code_challenge, proof.codeVerifier)) return 'the verifier does not fit';
  return undefined;
}

/** A verifier without a challenge fails too, because an attacker may have removed the challenge (RFC 9700 §2.1.1). */
export function isPkceSatisfied(codeChallenge: string | null, codeVerifier: string | undefined): boolean {
  if (codeChallenge === null || codeVerifier === undefined) return codeChallenge === null && codeVerifier === undefined;
  const derivedChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
  return CODE_VERIFIER.test(codeVerifier) && equalInConstantTime(derivedChallenge, codeChallenge);
}
