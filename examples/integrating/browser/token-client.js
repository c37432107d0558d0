import { RequestError, request, wait } from './request.js';

const MAX_ATTEMPTS = 3;
const MAX_DELAY_SECONDS = 5;
const RENEWAL_PAUSE_SECONDS = 2;

const clientsOfThisTab = new Set();
const otherTabs = new BroadcastChannel('customer-token');
otherTabs.onmessage = () => {
  for (const client of clientsOfThisTab) client.checkCustomer();
};

/** Customer tokens for a page. A call in the last minute of a token renews it. Never sends two requests at once. */
export class TokenClient {
  #last;
  #renewAtMs = 0;
  #expiresAtMs = 0;
  #pending;

  /** `onCustomerChange(entityId)` is called when a token belongs to another customer than the token before it. */
  constructor({ url, clientId, organizationId, groupId, onCustomerChange = () => undefined }) {
    this.url = `${url}/v2/customer`;
    this.path = groupId ? `${organizationId}/${groupId}/token` : 'token';
    this.client = { client_id: clientId, organization_id: organizationId };
    this.onCustomerChange = onCustomerChange;
    clientsOfThisTab.add(this);
  }

  /**
   * Calls an API. Repeats the call with a new token after 401, and after a short `Retry-After` of 429 and 503. Rejects
   * with `customer_changed`, and sends nothing more, if the next token belongs to another customer.
   */
  async fetch(url, init = {}) {
    let customer = this.#last?.entityId;
    for (let attempt = 1; ; attempt++) {
      const { token, entityId } = await this.#current();
      customer ??= entityId;
      if (entityId !== customer) throw new RequestError({ error: 'customer_changed' });
      const headers = new Headers(init.headers);
      headers.set('Authorization', `Bearer ${token}`);
      const response = await fetch(url, { ...init, headers }).catch((cause) => {
        throw new RequestError({ error: 'no_response', cause });
      });
      const delaySeconds = Number(response.headers.get('Retry-After')) || Infinity;
      const isBusy = [429, 503].includes(response.status) && delaySeconds <= MAX_DELAY_SECONDS;
      if (response.status === 401 && attempt === 1) this.discard(token);
      else if (isBusy && attempt < MAX_ATTEMPTS) await wait(delaySeconds);
      else return response;
    }
  }

  /** Resolves to a token, or rejects with a `RequestError`. Calls at the same time share one request. */
  async get() {
    return (await this.#current()).token;
  }

  /** Resolves to the id of the customer. */
  async entityId() {
    return (await this.#current()).entityId;
  }

  /** The token if it has not expired. */
  get validToken() {
    return Date.now() < this.#expiresAtMs ? this.#last.token : undefined;
  }

  /** Resolves to the response with a further token, which `get` never returns. */
  requestToken(options = {}) {
    const body = { grant_type: 'cookie', response_type: 'token', ...this.client };
    return request(`${this.url}/${this.path}`, { body, withCookies: true, ...options });
  }

  /** Drops a token that an API has rejected. Without an argument it drops any token. */
  discard(token = this.#last?.token) {
    if (token === this.#last?.token) this.#renewAtMs = this.#expiresAtMs = 0;
  }

  /** Drops the token. The next one may belong to another customer, and does not cause `onCustomerChange`. */
  expectNewCustomer() {
    this.discard();
    this.#last = undefined;
  }

  /** After this tab has left its customer: drops the tokens here, and makes the other tabs check their customers. */
  discardInAllTabs() {
    for (const client of clientsOfThisTab) client.expectNewCustomer();
    otherTabs.postMessage('discard');
  }

  /** Requests a new token if the page has had one. So `onCustomerChange` is called if the customer has changed. */
  checkCustomer() {
    this.discard();
    if (this.#last) this.#current().catch(() => undefined); // then the next call checks the customer
  }

  async #current() {
    if (Date.now() < this.#renewAtMs) return this.#last;
    this.#pending ??= this.#renew().finally(() => (this.#pending = undefined));
    return this.#pending;
  }

  async #renew() {
    try {
      const result = await this.requestToken(this.validToken ? { maxAttempts: 1 } : {});
      const { access_token: token, entity_id: entityId, expires_in } = result;
      const marginSeconds = Math.min(60, expires_in / 10);
      this.#expiresAtMs = Date.now() + expires_in * 1000;
      this.#renewAtMs = this.#expiresAtMs - marginSeconds * 1000;
      const hasChanged = this.#last && this.#last.entityId !== entityId;
      this.#last = { token, entityId };
      if (hasChanged) queueMicrotask(() => this.onCustomerChange(entityId));
    } catch (error) {
      if (!this.validToken) throw error;
      const pauseSeconds = error.retryAfterSeconds ?? RENEWAL_PAUSE_SECONDS;
      this.#renewAtMs = Math.min(this.#expiresAtMs, Date.now() + pauseSeconds * 1000);
    }
    return this.#last;
  }
}
