// @ts-check

const RENEW_BEFORE_EXPIRY_MS = 60_000;

/** Gives all parts of a page the same customer token. The token stays in memory and is never stored. */
export class TokenHelper {
  /** @type {{ access_token: string, entity_id: string, expires_in: number } | undefined} */
  #current;
  #renewAt = 0;
  /** @type {Promise<object> | undefined} */
  #pending;
  #request;

  /** @param {() => Promise<any>} request sends the cookie grant and resolves to the body of the response */
  constructor(request) {
    this.#request = request;
  }

  /**
   * The current token, or a new one if there is none or it expires soon. Calls during a request share the request: two
   * first requests would make two customers.
   */
  token() {
    if (this.#current && Date.now() < this.#renewAt) return Promise.resolve(this.#current);
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** Drops the token, for example after a 401. The next call gets a new one. */
  drop() {
    this.#current = undefined;
  }

  async #renew() {
    const body = await oneTabAtATime(() => this.#request());
    this.#renewAt = Date.now() + body.expires_in * 1_000 - RENEW_BEFORE_EXPIRY_MS;
    this.#current = body;
    return body;
  }
}

/**
 * Other tabs of the same site have token helpers of their own.
 * @template Result
 * @param {() => Promise<Result>} work
 */
export const oneTabAtATime = (work) => navigator.locks.request('customer token', work);
