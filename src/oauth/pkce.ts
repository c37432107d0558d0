import { createHash } from 'node:crypto';
import { equalInConstantTime } from '../platform/secret.js';

/** A `code_challenge` of the method S256: SHA-256 in base64url (RFC 7636 §4.2). */
export const CODE_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
/** A `code_verifier` (RFC 7636 §4.1). */
export const CODE_VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** A verifier without a challenge fails too, because an attacker may have removed the challenge (RFC 9700 §2.1.1). */
export function isPkceSatisfied(codeChallenge: string | null, codeVerifier: string | undefined): boolean {
  if (codeChallenge === null || codeVerifier === undefined) return codeChallenge === null && codeVerifier === undefined;
  const derivedChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
  return CODE_VERIFIER.test(codeVerifier) && equalInConstantTime(derivedChallenge, codeChallenge);
}
