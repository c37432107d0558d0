import { oneTabAtATime, request, TOKEN_LOCK, type TokenResponse } from './request.js';
import { RequestError, withRequestErrors } from './request-error.js';
import type { TokenClient } from './token-client.js';
import { challengeOf, createVerifier, VERIFIER_TTL_MS } from './verifier.js';
import { checkCookies, forgetToken, hasCustomer, storedOf, storeToken } from './without-cookies.js';

const ITEM = 'move-verifier';

interface PendingMove {
  /** The id of the room for which the verifier was created. */
  room?: string | undefined;
  verifier?: string;
  expiresAtMs?: number;
}

export interface FinishOptions {
  /** Replaces the customer of this device, after its user has agreed. For `identity_conflict`. */
  replace?: boolean | undefined;
}

/** A device that receives a customer. */
export interface NewDevice {
  readonly clientId: string;
  /** Step 1. Resolves to the challenge. Each room needs another one. */
  beginMove(room?: string): Promise<string>;
  /** Forgets the verifier, so that the next move has another one. */
  cancelMove(): Promise<void>;
  /** Step 4. */
  finishMove(transferToken: string, options?: FinishOptions): Promise<TokenResponse>;
}

/** A browser that receives a customer. */
export class NewBrowser implements NewDevice {
  readonly clientId: string;
  readonly #tokens: TokenClient;

  constructor(tokens: TokenClient) {
    this.clientId = tokens.clientId;
    this.#tokens = tokens;
  }

  /**
   * Step 1. Resolves to the challenge. Returns the same challenge again for the same room, until the verifier is sent
   * or an hour old, or the move is cancelled.
   */
  beginMove(room?: string): Promise<string> {
    return withRequestErrors(async () => {
      let { verifier, expiresAtMs = 0, room: earlierRoom } = readMove();
      if (!verifier || Date.now() >= expiresAtMs || room !== earlierRoom) {
        verifier = createVerifier();
        writeMove({ room, verifier, expiresAtMs: Date.now() + VERIFIER_TTL_MS });
      }
      return challengeOf(verifier);
    });
  }

  /** Forgets the verifier, so that the next move has another one. */
  cancelMove(): Promise<void> {
    return withRequestErrors(async () => localStorage.removeItem(ITEM));
  }

  /** Step 4. The tokens of all tabs are those of the received customer then. */
  finishMove(transferToken: string, { replace }: FinishOptions = {}): Promise<TokenResponse> {
    return withRequestErrors(async () => {
      const move = readMove();
      if (!move.verifier) throw new RequestError({ error: 'move_not_begun' });
      if (Date.now() >= (move.expiresAtMs ?? 0)) throw new RequestError({ error: 'move_expired' });
      const { url, settings } = this.#tokens;
      const stored = storedOf(settings);
      if (hasCustomer(stored) && !replace) throw new RequestError({ status: 409, error: 'identity_conflict' });
      localStorage.removeItem(ITEM); // before the exchange: after a reload, a second exchange would end the move
      const proof = { grant_type: 'identity_token', code: transferToken, code_verifier: move.verifier };
      const restore = () => writeMove(move);
      const inBrowser = { ...proof, client_id: this.clientId, remember: 'browser', replace };
      const response = stored?.isDropped
        ? await this.#exchangeForStorage(proof, restore)
        : await exchangeOnce(`${url}/v2/customer/token`, inBrowser, restore);
      if (stored && !stored.isDropped) await this.#keep(response);
      this.#tokens.discardInAllTabs();
      return response;
    });
  }

  /** With the lock, so that no tab stores the successor of an earlier token. */
  #exchangeForStorage(proof: object, restore: () => void): Promise<TokenResponse> {
    const { url, settings } = this.#tokens;
    const body = { ...proof, client_id: this.clientId, remember: 'refresh_token' };
    return oneTabAtATime(TOKEN_LOCK, async () => {
      const response = await exchangeOnce<TokenResponse>(`${url}/v2/customer/token`, body, restore);
      const replaced = storedOf(settings) ?? {};
      const result = await storeToken(settings, response, true);
      await forgetToken(settings, replaced).catch(() => undefined); // a token that nothing has any more
      return result;
    });
  }

  /** If the browser has dropped the cookies of the customer, or this is not known, moves it within the browser. */
  async #keep({ entity_id, access_token }: TokenResponse): Promise<void> {
    const { url, settings } = this.#tokens;
    if (await checkCookies(settings, entity_id).catch(() => false)) return;
    const get = async () => access_token;
    const source = { url, get, requestToken: async () => ({ access_token }) };
    try {
      const verifier = createVerifier();
      const { transferToken } = await approveMove(source, this.clientId, await challengeOf(verifier));
      const proof = { grant_type: 'identity_token', code: transferToken, code_verifier: verifier };
      await this.#exchangeForStorage(proof, () => undefined);
    } catch (cause) {
      throw new RequestError({ error: 'move_uncertain', cause });
    }
  }
}

/**
 * Sends the exchange once, by a browser with its cookies. Calls `restore` if the transfer token can still be exchanged.
 */
export function exchangeOnce<Response = TokenResponse>(
  url: string,
  body: { remember: string },
  restore: () => Promise<void> | void,
): Promise<Response> {
  const exchange = { body, withCookies: body.remember === 'browser', isRepeatable: false };
  return withRequestErrors(async () => {
    try {
      return await request<Response>(url, exchange);
    } catch (error) {
      const failure = error as RequestError;
      if (failure.mayHaveSucceeded) Object.assign(failure, { error: 'move_uncertain', isTemporary: false });
      else if (failure.error === 'invalid_grant') failure.error = 'move_expired';
      else await restore();
      throw failure;
    }
  });
}

/** The tokens of the old device: a `TokenClient`, or those of a page that gets its tokens from its backend. */
export interface TokenSource {
  /** The URL of the service. */
  readonly url: string;
  /** Resolves to the token that the page uses. */
  get(): Promise<string>;
  /** Resolves to a further token of the same customer. */
  requestToken(): Promise<{ access_token: string }>;
  /** Drops a token that has ended. */
  discard?(token: string): void;
}

/** What the old device sends to the new one, and keeps. */
export interface Move {
  transferToken: string;
  expiresInSeconds: number;
  /** For `endToken`. */
  bearer: string;
}

/**
 * Step 3, on the old device, after its user has agreed. `clientId` and `challenge` are those of the new device. If the
 * transfer token expires, call the function again.
 */
export function approveMove(tokens: TokenSource, clientId: string, challenge: string): Promise<Move> {
  return withRequestErrors(async () => {
    const customerId = customerOf(await tokens.get());
    const { access_token: bearer } = await tokens.requestToken(); // of its own: a log-out does not end it
    if (customerOf(bearer) !== customerId) throw new RequestError({ error: 'other_customer' }); // the browser keeps no cookies
    const body = { bearer_type: 'customer', client_id: clientId, code_challenge: challenge };
    const result = await request<{ identity_transfer_token: string; expires_in: number }>(
      `${tokens.url}/v2/customer/identity_transfer`,
      { body, bearer },
    );
    return { transferToken: result.identity_transfer_token, expiresInSeconds: result.expires_in, bearer };
  });
}

function customerOf(token: string): string {
  const [, claims = ''] = token.split('.');
  return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))).sub;
}

/** The storage is shared by all tabs, because a scanned link opens another one. */
function readMove(): PendingMove {
  const text = localStorage.getItem(ITEM);
  return text ? JSON.parse(text) : {};
}

function writeMove(move: PendingMove): void {
  localStorage.setItem(ITEM, JSON.stringify(move));
}
