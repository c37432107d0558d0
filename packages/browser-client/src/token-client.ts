import {
  type ClientSettings,
  cookieBodyOf,
  MAX_DELAY_SECONDS,
  request,
  type TokenResponse,
  tokenOf,
  tokenUrlOf,
  wait,
  withoutSlash,
  withTokenLock,
} from './request.js';
import { RequestError, withRequestErrors } from './request-error.js';
import { requestTokenWithLock } from './without-cookies.js';

const MAX_ATTEMPTS = 3;
const RENEWAL_PAUSE_SECONDS = 2;
const MAX_MARGIN_SECONDS = 60;

export interface TokenClientOptions {
  /** The URL of the service. */
  url: string;
  clientId: string;
  organizationId: string;
  /** Only for organizations with `chat_between_groups: false`. */
  groupId?: string | undefined;
  /** Is called when a token belongs to another customer than the token before it. */
  onCustomerChange?: ((entityId: string) => void) | undefined;
  /**
   * How the customer stays in a browser that does not keep the cookies of the service. If omitted, it does not stay.
   * `refresh_token`: the page stores a refresh token in `localStorage`, which each script of the page can read. The
   * client needs the grants `anonymous` and `refresh_token`.
   */
  withoutCookies?: 'refresh_token' | undefined;
}

const clientsOfThisTab = new Set<TokenClient>();
let otherTabs: ReturnType<typeof openChannel>;

/** Customer tokens for a page. A call shortly before a token expires renews it. Never sends two requests at once. */
export class TokenClient {
  readonly clientId: string;
  /** The URL of the service. */
  readonly url: string;
  /** @internal */
  readonly client: { client_id: string; organization_id: string };
  /** @internal */
  readonly settings: ClientSettings;
  readonly #onCustomerChange: (entityId: string) => void;
  #last: { token: string; entityId: string } | undefined;
  #renewAtMs = 0;
  #expiresAtMs = 0;
  #pending: Promise<{ token: string; entityId: string }> | undefined;

  constructor(options: TokenClientOptions) {
    const { clientId, organizationId, groupId, withoutCookies, onCustomerChange = () => undefined } = options;
    const url = withoutSlash(options.url);
    this.clientId = clientId;
    this.url = url;
    this.client = { client_id: clientId, organization_id: organizationId };
    this.settings = { url, client: this.client, groupId, withoutCookies };
    this.#onCustomerChange = onCustomerChange;
    clientsOfThisTab.add(this);
    otherTabs ??= openChannel();
  }

  /**
   * Calls an API, and resolves to its response, also to an error response: check `ok`. Repeats the call once with a new
   * token after 401, and after a short `Retry-After` of 429 and 503. Rejects with `no_response` without a response or
   * after a timeout of `signal`. Rejects with `customer_changed`, and sends nothing more, if the next token belongs to
   * another customer.
   */
  fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    return withRequestErrors(async () => {
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
    });
  }

  /** Resolves to a token. Calls at the same time share one request. */
  async get(): Promise<string> {
    return (await this.#current()).token;
  }

  /** Resolves to the id of the customer. */
  async entityId(): Promise<string> {
    return (await this.#current()).entityId;
  }

  /** @internal The token if it has not expired. */
  get validToken(): string | undefined {
    return Date.now() < this.#expiresAtMs ? this.#last?.token : undefined;
  }

  /**
   * Drops a token that an API has rejected, so that `get` requests a new one. Without an argument it drops any token.
   */
  discard(token: string | undefined = this.#last?.token): void {
    if (token === this.#last?.token) this.#renewAtMs = this.#expiresAtMs = 0;
  }

  /** Resolves to the response with a further token, which `get` never returns. For `approveMove`. */
  async requestToken(options: { maxAttempts?: number } = {}): Promise<TokenResponse> {
    const { settings } = this;
    if (settings.withoutCookies) return withTokenLock(() => requestTokenWithLock(settings), options);
    const body = cookieBodyOf(settings);
    return tokenOf(await request(tokenUrlOf(settings), { body, withCookies: true, ...options }));
  }

  /** @internal Drops the token. The next one may belong to another customer, and does not cause `onCustomerChange`. */
  expectNewCustomer(): void {
    this.discard();
    this.#last = undefined;
  }

  /**
   * @internal After this tab has changed the customer: drops the tokens here, and makes the other tabs check theirs.
   * Tokens of the customer `keptId` stay.
   */
  discardInAllTabs(keptId?: string): void {
    for (const client of clientsOfThisTab) if (client.#last?.entityId !== keptId) client.expectNewCustomer();
    otherTabs?.postMessage(keptId);
  }

  /** @internal Requests a new token if the page has had one. So `onCustomerChange` is called if it has changed. */
  checkCustomer(keptId?: string): void {
    if (this.#last?.entityId === keptId) return;
    this.discard();
    if (this.#last) this.#current().catch(() => undefined); // then the next call checks the customer
  }

  async #current(): Promise<{ token: string; entityId: string }> {
    if (this.#last && Date.now() < this.#renewAtMs) return this.#last;
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #renew(): Promise<{ token: string; entityId: string }> {
    const last = this.#last;
    const options = this.validToken ? { maxAttempts: 1 } : {};
    try {
      let result = await this.requestToken(options);
      if (this.#isOfOther(result)) {
        // A browser that drops the cookies has another customer at each request. A page that reloads would do so
        // forever.
        const changedTo = result.entity_id;
        result = await this.requestToken(options);
        const isThird = result.entity_id !== changedTo && this.#isOfOther(result);
        if (isThird) throw new RequestError({ error: 'cookies_blocked' });
      }
      const { access_token: token, entity_id: entityId, expires_in } = result;
      const marginSeconds = Math.min(MAX_MARGIN_SECONDS, expires_in / 10);
      this.#expiresAtMs = Date.now() + expires_in * 1000;
      this.#renewAtMs = this.#expiresAtMs - marginSeconds * 1000;
      const hasChanged = this.#isOfOther(result);
      this.#last = { token, entityId };
      if (hasChanged) queueMicrotask(() => this.#onCustomerChange(entityId));
      return this.#last;
    } catch (error) {
      if (!last || !this.validToken) throw error;
      const pauseSeconds = (error as RequestError).retryAfterSeconds ?? RENEWAL_PAUSE_SECONDS;
      this.#renewAtMs = Math.min(this.#expiresAtMs, Date.now() + pauseSeconds * 1000);
      return last;
    }
  }

  #isOfOther({ entity_id }: TokenResponse): boolean {
    return this.#last !== undefined && this.#last.entityId !== entity_id;
  }
}

/** A browser that blocks the storage of the page may refuse the channel. Then its token requests reject too. */
function openChannel() {
  try {
    const channel = new BroadcastChannel('customer-token');
    channel.onmessage = ({ data: keptId }) => {
      for (const client of clientsOfThisTab) client.checkCustomer(keptId);
    };
    if ('unref' in channel) (channel as { unref(): void }).unref(); // on a server, Node.js would stay alive for it
    return channel;
  } catch {
    return undefined;
  }
}
