import { fetchWithRetries, logError, readResult } from '../fetch-with-retries.js';

const RENEWAL_MARGIN_MS = 60_000;
const CHECK_INTERVAL_MS = 30_000;
/** The service accepts a repeated renewal for 120 s. A later one ends the sign-in. */
const MAX_RENEWAL_SECONDS = 90;

/** The access token of the backend's agent. All replicas share the tokens in `store`. */
export class AgentSession {
  #renewing;
  #succeededAtMs = Date.now();
  /**
   * The store has two functions. `read()` resolves to `{ accessToken, expiresAtMs, refreshToken }`. `update(change)`
   * locks these tokens for all replicas, calls `change(current)` and stores its result before it resolves to it.
   */
  constructor({ url, clientId, clientSecret, store }) {
    this.url = `${url}/v2/token`;
    this.credentials = { client_id: clientId, client_secret: clientSecret };
    this.store = store;
  }

  /**
   * Call this once in each replica. Every 30 s it reads the store, and repeats the renewal of a replica that crashed.
   * `onError` gets each error and the seconds since the last success, also while the old token is still valid.
   */
  async start(onError = logError) {
    const check = async () => {
      try {
        const tokens = await this.store.read();
        if (!isUsable(tokens)) await this.#renewOnce();
        this.#succeededAtMs = Date.now();
      } catch (error) {
        onError(error, Math.round((Date.now() - this.#succeededAtMs) / 1000));
      }
    };
    setInterval(check, CHECK_INTERVAL_MS).unref();
    await check();
  }

  /** Resolves to an access token. `rejected` is a token that the service has just rejected with 401. */
  async token(rejected) {
    const tokens = await this.store.read();
    if (isUsable(tokens, rejected)) return tokens.accessToken;
    const renewed = await this.#renewOnce(rejected).catch((error) => {
      if (isUsable(tokens, rejected, 0)) return tokens; // The old token stays valid until it expires.
      throw error;
    });
    return renewed.accessToken;
  }

  /** All calls in this process wait for the same renewal. */
  #renewOnce(rejected) {
    // Another replica may have renewed the tokens while this one waited for the lock.
    const change = (current) => (isUsable(current, rejected) ? current : this.#renew(current));
    this.#renewing ??= this.store.update(change).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renew({ refreshToken }) {
    const parameters = { grant_type: 'refresh_token', refresh_token: refreshToken, ...this.credentials };
    const request = { method: 'POST', body: new URLSearchParams(parameters) };
    const response = await fetchWithRetries(this.url, request, MAX_RENEWAL_SECONDS);
    const result = await readResult(response, 'no agent token');
    const expiresAtMs = Date.now() + result.expires_in * 1000;
    return { accessToken: result.access_token, expiresAtMs, refreshToken: result.refresh_token };
  }
}

function isUsable({ accessToken, expiresAtMs }, rejected, marginMs = RENEWAL_MARGIN_MS) {
  return accessToken !== rejected && Date.now() < expiresAtMs - marginMs;
}
