import { readFile } from 'node:fs/promises';
import { fetchWithRetries, readResult } from '../fetch-with-retries.js';

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const MARGIN_MS = 60_000;

/** The text of a file, such as a projected token of Kubernetes. It is read again each time, because the token changes. */
export const fromFile = (path) => async () => (await readFile(path, 'utf8')).trim();

/** The agent token of this process. Replicas need no common store: all tokens of a client have one session. */
export class ClientCredentials {
  #current = { token: undefined, expiresAtMs: 0 };
  #request;

  /** Give `clientSecret`, or `assertion`: a function that resolves to an assertion, such as `fromFile(path)`. */
  constructor({ url, clientId, clientSecret, assertion }) {
    this.url = `${url}/v2/token`;
    this.clientId = clientId;
    this.clientSecret = clientSecret;
    this.assertion = assertion;
  }

  /** Resolves to an agent token. `rejected` is a token that the service has just rejected with 401. */
  async token(rejected) {
    if (this.#isUsable(rejected, MARGIN_MS)) return this.#current.token;
    // all calls wait for the same request
    this.#request ??= this.#renew().finally(() => {
      this.#request = undefined;
    });
    await this.#request.catch((error) => {
      if (!this.#isUsable(rejected, 0)) throw error; // the old token stays valid until it expires
    });
    return this.#current.token;
  }

  #isUsable(rejected, marginMs) {
    const { token, expiresAtMs } = this.#current;
    return token !== rejected && Date.now() < expiresAtMs - marginMs;
  }

  async #renew() {
    // for each attempt, because an assertion of your own is valid once
    const init = async () => ({ method: 'POST', body: new URLSearchParams(await this.#parameters()) });
    const result = await readResult(await fetchWithRetries(this.url, init), 'no agent token');
    this.#current = { token: result.access_token, expiresAtMs: Date.now() + result.expires_in * 1000 };
  }

  async #parameters() {
    const common = { grant_type: 'client_credentials', client_id: this.clientId };
    if (!this.assertion) return { ...common, client_secret: this.clientSecret };
    return { ...common, client_assertion_type: ASSERTION_TYPE, client_assertion: await this.assertion() };
  }
}
