import { asRequestError, withRequestErrors } from './request-error.js';

/** The default of TRANSFER_TOKEN_TTL of the service. A verifier may outlive its transfer token. */
export const VERIFIER_TTL_MS = 3_600_000;

/** A new PKCE verifier (RFC 7636). */
export const createVerifier = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** The challenge of a verifier, by S256. Rejects on a page without https, which has no `crypto.subtle`. */
export function challengeOf(verifier: string): Promise<string> {
  return withRequestErrors(async () =>
    base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))),
  );
}

/** The code that users compare: 12 digits of the challenge. Throws if the text is no challenge. */
export function codeOf(challenge: string): string {
  const bytes = decode(challenge.slice(0, 8));
  const number = [...bytes].reduce((sum, byte) => sum * 256 + byte.charCodeAt(0), 0);
  return String(number % 1e12)
    .padStart(12, '0')
    .replaceAll(/.{4}\B/g, '$& ');
}

function decode(text: string): string {
  try {
    return atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  } catch (cause) {
    throw asRequestError(cause);
  }
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
