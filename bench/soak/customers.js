// @ts-check
import { createHash, randomBytes } from 'node:crypto';
import { CLIENT, ORGANIZATION } from '../site.js';
import { CustomerTokens } from './customer-tokens.js';
import { Pool } from './pool.js';
import { bearer } from './site.js';

const POOL_ENTRIES_COUNT = 5_000;
/** Below the eight transfers that a chain may have. */
const MAX_TRANSFERS = 6;
const TOKEN = '/v2/customer/token';

/** What browsers and applications do: the cookie grant and identity transfers. Checks each response. */
export class Customers {
  /** @type {Pool<{ cookies: string, entityId: string }>} */
  #browsers = new Pool(POOL_ENTRIES_COUNT);
  /** @type {Pool<{ code: string, verifier: string, entityId: string, transfers: number }>} */
  #codes = new Pool(POOL_ENTRIES_COUNT);
  /** Clients of the site. Changes of the registry add further ones. */
  clients = [CLIENT];

  /** @param {import('./caller.js').Caller} caller */
  constructor(caller) {
    this.caller = caller;
    this.tokens = new CustomerTokens(caller);
  }

  create() {
    return this.#useCookies('cookie grant, new customer', undefined);
  }

  async comeBack() {
    const browser = this.#browsers.take();
    if (!browser) return this.create();
    await this.#useCookies('cookie grant, returning customer', browser);
    this.#browsers.put(browser);
  }

  async transfer() {
    const from = this.tokens.pool.take();
    if (!from || from.transfers >= MAX_TRANSFERS) return this.comeBack();
    from.isParent = true;
    await this.transferAs('identity transfer by the customer', from.token, from, { bearer_type: 'customer' });
    this.tokens.pool.put(from);
  }

  /**
   * Creates a transfer token with PKCE.
   *
   * @param {string} operation @param {string} token of the customer or of an agent
   * @param {{ entityId: string, transfers: number }} customer @param {object} fields
   */
  async transferAs(operation, token, { entityId, transfers }, fields) {
    const verifier = randomBytes(32).toString('base64url');
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const { ok, json } = await this.caller.send({
      operation,
      method: 'POST',
      path: '/v2/customer/identity_transfer',
      headers: bearer(token),
      body: { client_id: CLIENT, code_challenge: challenge, ...fields },
    });
    if (ok) this.#codes.put({ code: json.identity_transfer_token, verifier, entityId, transfers });
  }

  async redeem() {
    const transfer = this.#codes.take();
    if (!transfer) return this.transfer();
    const operation = 'exchange of a transfer token';
    const { code, verifier, entityId, transfers } = transfer;
    const body = { grant_type: 'identity_token', client_id: CLIENT, code, code_verifier: verifier };
    const { ok, json } = await this.caller.send({ operation, method: 'POST', path: TOKEN, body });
    if (ok) await this.tokens.accept(operation, json, entityId, CLIENT, transfers + 1);
  }

  /** A customer for an agent's operation. @param {(entityId: string) => Promise<unknown>} use */
  async withCustomer(use) {
    const browser = this.#browsers.take();
    if (!browser) return;
    await use(browser.entityId);
    this.#browsers.put(browser);
  }

  /** @param {string} operation @param {{ cookies: string, entityId: string } | undefined} browser */
  async #useCookies(operation, browser) {
    const client = this.clients[Math.floor(Math.random() * this.clients.length)] ?? CLIENT;
    const body = { grant_type: 'cookie', client_id: client, response_type: 'token', organization_id: ORGANIZATION };
    /** @type {Record<string, string>} */
    const headers = browser ? { cookie: browser.cookies } : {};
    const { ok, json, cookies } = await this.caller.send({ operation, method: 'POST', path: TOKEN, headers, body });
    if (!ok) return;
    await this.tokens.accept(operation, json, browser?.entityId ?? json.entity_id, client, 0);
    if (!browser) this.#browsers.put({ cookies, entityId: json.entity_id });
    else if (cookies !== browser.cookies) this.caller.records.reportWrong(operation, 'the cookies differ');
  }
}
