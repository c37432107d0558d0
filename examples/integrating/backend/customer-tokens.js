import { customerToken } from './customer-token.js';

const MARGIN_MS = 60_000;

/** The customer tokens of the users of this replica. `options` are those of `customerToken`. */
export class CustomerTokens {
  #cache = new Map();

  constructor(options) {
    this.options = options;
  }

  /** Calls `send(token)`, which requests the Customer Chat API. After 401 calls it once more with a new token. */
  async call(userId, send) {
    const response = await send(await this.#token(userId));
    if (response.status !== 401) return response;
    this.#cache.delete(userId);
    return send(await this.#token(userId));
  }

  async #token(userId) {
    const cached = this.#cache.get(userId);
    if (cached && Date.now() < cached.expiresAtMs - MARGIN_MS) return cached.token;
    const { access_token: token, expires_in } = await customerToken(this.options, userId);
    this.#cache.set(userId, { token, expiresAtMs: Date.now() + expires_in * 1000 });
    return token;
  }
}
