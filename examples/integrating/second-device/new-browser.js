import { RequestError, request } from '../browser/request.js';

const ITEM = 'move-verifier';
export const VERIFIER_TTL_MS = 3_600_000;

/** A browser that receives a customer. */
export class NewBrowser {
  constructor({ url, clientId }) {
    this.url = `${url}/v2/customer/token`;
    this.clientId = clientId;
  }

  /** Step 1. Resolves to the challenge. Returns the same challenge again until the verifier is sent or an hour old. */
  async beginMove() {
    let { verifier, expiresAtMs } = readItem();
    if (!(Date.now() < expiresAtMs)) {
      verifier = createVerifier();
      expiresAtMs = Date.now() + VERIFIER_TTL_MS;
      localStorage.setItem(ITEM, JSON.stringify({ verifier, expiresAtMs })); // for all tabs of the page
    }
    return challengeOf(verifier);
  }

  /** Step 4. Resolves to the token response, or rejects with a `RequestError`. `replace` is for `identity_conflict`. */
  async finishMove(transferToken, { replace } = {}) {
    const item = readItem();
    if (!item.verifier) throw new RequestError({ error: 'move_not_begun' });
    if (Date.now() >= item.expiresAtMs) throw new RequestError({ error: 'move_expired' });
    localStorage.removeItem(ITEM); // before the exchange: after a reload, a second exchange would end the move
    const proof = { grant_type: 'identity_token', code: transferToken, code_verifier: item.verifier };
    const body = { ...proof, client_id: this.clientId, remember: 'browser', replace };
    return exchangeOnce(this.url, { body, withCookies: true }, () => localStorage.setItem(ITEM, JSON.stringify(item)));
  }
}

/** Sends the exchange once. Calls `restore` if the transfer token can still be exchanged. */
export async function exchangeOnce(url, init, restore) {
  try {
    return await request(url, { ...init, isRepeatable: false });
  } catch (error) {
    if (error.mayHaveSucceeded) error.error = 'move_uncertain';
    else if (error.error !== 'invalid_grant') await restore();
    throw error;
  }
}

function readItem() {
  return JSON.parse(localStorage.getItem(ITEM) ?? '{}');
}

export const createVerifier = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

export const challengeOf = async (verifier) =>
  base64url(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)));

/** The code that users compare: 12 digits of the challenge. */
export function codeOf(challenge) {
  const bytes = atob(challenge.slice(0, 8).replaceAll('-', '+').replaceAll('_', '/'));
  const number = [...bytes].reduce((sum, byte) => sum * 256 + byte.charCodeAt(0), 0);
  return String(number % 1e12)
    .padStart(12, '0')
    .replaceAll(/.{4}\B/g, '$& ');
}

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
