import {
  challengeOf,
  createVerifier,
  exchangeOnce,
  RequestError,
  request,
  VERIFIER_TTL_MS,
} from '@customer-authorization/browser-client';

const RENEWAL_MARGIN_MS = 60_000;
const REFRESH_TOKEN = 'refresh-token';
const MOVE = 'move-verifier';

/** The tokens of an app that received its customer by a move. */
export class AppSession {
  #accessToken;
  #expiresAtMs = 0;
  #renewal;
  #lastTurn = Promise.resolve();

  /**
   * `store` has `read(name)`, `write(name, text)` and `remove(name)` of the Keychain or Keystore, with promises. Create
   * one session: a second one keeps the access token of its customer after the first has received another customer.
   */
  constructor({ url, clientId, store }) {
    this.url = `${url.replace(/\/+$/, '')}/v2/customer`;
    this.clientId = clientId;
    this.store = store;
  }

  /** Step 1. As `NewBrowser`, also after a restart of the app. */
  beginMove(room) {
    return this.#inTurn(async () => {
      let { verifier, expiresAtMs, room: earlierRoom } = await this.#readMove();
      if (!(Date.now() < expiresAtMs) || room !== earlierRoom) {
        verifier = createVerifier();
        expiresAtMs = Date.now() + VERIFIER_TTL_MS;
        await this.#useStore('write', MOVE, JSON.stringify({ room, verifier, expiresAtMs }));
      }
      return challengeOf(verifier);
    });
  }

  /** Forgets the verifier, so that the next move has another one. */
  cancelMove() {
    return this.#inTurn(() => this.#useStore('remove', MOVE));
  }

  /** Step 4. As `NewBrowser`. Resolves to the token response without `refresh_token`. */
  finishMove(transferToken, { replace } = {}) {
    return this.#inTurn(async () => {
      const move = await this.#readMove();
      if (!move.verifier) throw new RequestError({ error: 'move_not_begun' });
      if (Date.now() >= move.expiresAtMs) throw new RequestError({ error: 'move_expired' });
      const hasCustomer = Boolean(await this.#useStore('read', REFRESH_TOKEN));
      if (hasCustomer && !replace) throw new RequestError({ error: 'identity_conflict' });
      await this.#useStore('remove', MOVE); // first: a second exchange would end the move
      return this.#accept(await this.#exchange(transferToken, move));
    });
  }

  /**
   * Resolves to an access token. Parallel calls share one renewal. After 401 from an API: call it with the rejected
   * token, and repeat the API call once. Rejects with `customer_changed` if the app has another customer now.
   */
  async token(rejected) {
    if (rejected !== undefined) this.discard(rejected);
    const token = await this.#current();
    if (rejected === undefined || customerOf(token) === customerOf(rejected)) return token;
    throw new RequestError({ error: 'customer_changed' });
  }

  /** Drops a token, so that `token()` renews it. */
  discard(token = this.#accessToken) {
    if (token === this.#accessToken) this.#expiresAtMs = 0;
  }

  /** Logs out of this app. `everywhere` ends the tokens of the customer on all devices. */
  leave({ everywhere = false } = {}) {
    return this.#inTurn(async () => {
      if (everywhere) await this.#endSessions(await this.#renew());
      else await this.#endTokens();
      this.discard();
      await this.#useStore('remove', REFRESH_TOKEN);
    });
  }

  async #current() {
    if (Date.now() < this.#expiresAtMs - RENEWAL_MARGIN_MS) return this.#accessToken;
    this.#renewal ??= this.#inTurn(() => this.#renew()).finally(() => (this.#renewal = undefined));
    return this.#renewal;
  }

  #exchange(transferToken, move) {
    const proof = { grant_type: 'identity_token', code: transferToken, code_verifier: move.verifier };
    const body = { ...proof, client_id: this.clientId, remember: 'refresh_token' };
    return exchangeOnce(`${this.url}/token`, body, () => this.#useStore('write', MOVE, JSON.stringify(move)));
  }

  async #renew() {
    const refreshToken = await this.#useStore('read', REFRESH_TOKEN);
    if (!refreshToken) throw new RequestError({ error: 'no_customer' });
    try {
      const body = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: this.clientId };
      const result = await request(`${this.url}/token`, { body });
      // another process that shares the store may have received another customer, or left
      const stored = await this.#useStore('read', REFRESH_TOKEN);
      if (stored !== refreshToken && stored !== result.refresh_token) return this.#renew();
      return (await this.#accept(result)).access_token;
    } catch (error) {
      const isStored = (await this.#useStore('read', REFRESH_TOKEN)) === refreshToken;
      if (error.error !== 'invalid_grant' || !isStored) throw error;
      await this.#useStore('remove', REFRESH_TOKEN);
      throw Object.assign(error, { error: 'no_customer' });
    }
  }

  async #endTokens() {
    const token = await this.#useStore('read', REFRESH_TOKEN);
    if (token) await request(`${this.url}/revoke`, { body: { token, client_id: this.clientId } });
  }

  /** The new bearer gets 401 only if the customer's sessions have ended. */
  async #endSessions(bearer) {
    await request(`${this.url}/end_sessions`, { body: {}, bearer }).catch((error) => {
      if (error.status !== 401) throw error;
    });
  }

  async #accept({ refresh_token, ...response }) {
    await this.#useStore('write', REFRESH_TOKEN, refresh_token); // before the access token is used
    this.#accessToken = response.access_token;
    this.#expiresAtMs = Date.now() + response.expires_in * 1000;
    return response;
  }

  async #readMove() {
    return JSON.parse((await this.#useStore('read', MOVE)) ?? '{}');
  }

  async #useStore(method, ...parameters) {
    try {
      return await this.store[method](...parameters);
    } catch (cause) {
      throw new RequestError({ error: 'store_failed', cause });
    }
  }

  /** Runs one operation after the other, so that two of them never use the same refresh token or verifier. */
  #inTurn(work) {
    const turn = this.#lastTurn.then(work);
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }
}

/** The id of a token's customer. */
function customerOf(token) {
  const [, claims] = token.split('.');
  return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))).sub;
}
