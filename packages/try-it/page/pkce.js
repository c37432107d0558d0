// @ts-check
/** PKCE (RFC 7636) with S256, and the links between the two browsers. */

const VERIFIER_BYTES = 32;
const CHALLENGE = /^[\w-]{43}$/;
const TRANSFER_TOKEN = /^[A-Za-z0-9-]{1,16}:[\w-]{43}$/;

/** @param {Uint8Array} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

export const newVerifier = () => base64url(crypto.getRandomValues(new Uint8Array(VERIFIER_BYTES)));

/** @param {string} verifier */
export async function challengeOf(verifier) {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(hash));
}

/** The beginning of a challenge, for a person who compares two screens. @param {string} challenge */
export const checkCode = (challenge) => `${challenge.slice(0, 4)} ${challenge.slice(4, 8)}`;

/** @param {URLSearchParams} fragment */
export const challengeIn = (fragment) => valid(fragment.get('challenge'), CHALLENGE);

/** @param {URLSearchParams} fragment */
export const codeIn = (fragment) => valid(fragment.get('code'), TRANSFER_TOKEN);

/** @param {string | null} text @param {RegExp} form */
function valid(text, form) {
  return text !== null && form.test(text) ? text : undefined;
}
