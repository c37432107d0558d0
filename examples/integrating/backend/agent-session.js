import { fetchWithRetries, logError, readResult } from '../fetch-with-retries.js';

const RENEWAL_MARGIN_MS = 60_000;
const CHECK_INTERVAL_MS = 30_000;
/** A renewal that takes longer fails. The next one repeats it: the old token works until the new one is used. */
const MAX_RENEWAL_SECONDS = 90;

/** The access token of the backend's agent. All replicas share the tokens in `store`. */
export class AgentSession {
  #renewing;
  #succeededAtMs = Date.now();
  /**
   * The store has three functions. `fill(tokens)` stores `{ accessToken, expiresAtMs, refreshToken }`, and `read()`
   * resolves to them. `update(change)` locks these tokens for all replicas, calls `change(current)` and stores its
   * result before it resolves to it.
   */
  constructor({ url, clientId, clientSecret, store }) {
    this.url = `${url}/v2/token`;
    this.credentials = { client_id: clientId, client_secret: clientSecret };
    this.store = store;
  }

  /**
   * Once, with the code of a person's sign-in. Resolves to the id of the agent. Nothing is repeated, because after a lost
   * response a second exchange of the code ends the sign-in.
   */
  async signIn(code, redirectUri) {
    const result = await this.#request({ grant_type: 'authorization_code', code, redirect_uri: redirectUri }, 1);
    await this.store.fill(tokensOf(result));
    return result.account_id;
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
    return tokensOf(await this.#request({ grant_type: 'refresh_token', refresh_token: refreshToken }));
  }

  async #request(parameters, maxAttempts) {
    const body = new URLSearchParams({ ...parameters, ...this.credentials });
    const response = await fetchWithRetries(this.url, { method: 'POST', body }, MAX_RENEWAL_SECONDS, maxAttempts);
    return readResult(response, 'no agent token');
  }
}

function tokensOf({ access_token: accessToken, refresh_token: refreshToken, expires_in }) {
  return { accessToken, expiresAtMs: Date.now() + expires_in * 1000, refreshToken };
}

function isUsable({ accessToken, expiresAtMs }, rejected, marginMs = RENEWAL_MARGIN_MS) {
  return accessToken !== rejected && Date.now() < expiresAtMs - marginMs;
}
