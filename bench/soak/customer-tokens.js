// @ts-check
import { ORGANIZATION, RESOURCE_SERVER } from '../site.js';
import { Pool } from './pool.js';
import { ADMIN_TOKEN, basic, bearer } from './site.js';

const POOL_ENTRIES_COUNT = 5_000;
const ENDED = { status: 401, error: 'invalid_token' };

/**
 * @typedef {object} CustomerToken
 * @property {string} token
 * @property {string} entityId
 * @property {number} transfers the transfers before it in its chain
 * @property {boolean} isAlone whether it is the only token of its session
 * @property {boolean} isParent whether something was made with it
 */

/** What customers, resource servers and the operator do with customers' tokens. Checks each response. */
export class CustomerTokens {
  /** @type {Pool<CustomerToken>} */
  pool = new Pool(POOL_ENTRIES_COUNT);

  /** @param {import('./caller.js').Caller} caller */
  constructor(caller) {
    this.caller = caller;
  }

  async readInfo() {
    const item = this.pool.take();
    if (!item) return;
    const operation = 'token info';
    const headers = bearer(item.token);
    const { ok, json } = await this.caller.send({ operation, method: 'GET', path: '/v2/customer/info', headers });
    if (ok) this.caller.compare(operation, json, { entity_id: item.entityId, organization_id: ORGANIZATION });
    this.pool.put(item);
  }

  async introspect() {
    const item = this.pool.take();
    if (!item) return;
    await this.#introspect('introspection', item.token, { active: true, sub: item.entityId });
    this.pool.put(item);
  }

  /** The customer ends a token. Each later use of the token must fail, in every process. */
  async endToken() {
    const token = this.#takeLeaf();
    if (!token) return;
    const headers = bearer(token);
    const { ok } = await this.caller.send({
      operation: 'end of a token',
      method: 'DELETE',
      path: '/v2/customer/token',
      headers,
    });
    if (!ok) return; // the token may have ended
    const info = { operation: 'info of an ended token', method: 'GET', path: '/v2/customer/info', headers };
    await this.caller.send({ ...info, expected: ENDED });
    await this.#introspect('introspection of an ended token', token, { active: false });
  }

  /** The operator revokes a token. */
  async revoke() {
    const token = this.#takeLeaf();
    if (!token) return;
    const { ok } = await this.caller.send({
      operation: 'revocation by the operator',
      surface: 'management',
      method: 'POST',
      path: '/oauth2/revoke',
      headers: bearer(ADMIN_TOKEN),
      body: { token },
    });
    if (ok) await this.#introspect('introspection of an ended token', token, { active: false });
  }

  /**
   * Checks a token response and puts the token into the pool.
   *
   * @param {string} operation @param {any} json @param {string} entityId @param {string} client @param {number} transfers
   */
  async accept(operation, json, entityId, client, transfers) {
    this.caller.compare(operation, json, { entity_id: entityId, token_type: 'Bearer' });
    const claims = { sub: entityId, aud: 'customer-api', client_id: client, organization_id: ORGANIZATION };
    await this.caller.verify(operation, json.access_token, claims);
    // a token that an agent obtained has no session, and that of a transfer has a session of its own
    const isAlone = transfers > 0 || sessionOf(json.access_token) === undefined;
    this.pool.put({ token: json.access_token, entityId, transfers, isAlone, isParent: false });
  }

  /** Takes a token whose end ends no other token: the tokens of a session end together, with what was made with them. */
  #takeLeaf() {
    const item = this.pool.take();
    if (!item || (item.isAlone && !item.isParent)) return item?.token;
    this.pool.put(item);
    return undefined;
  }

  /** @param {string} operation @param {string} token @param {Record<string, unknown>} values */
  async #introspect(operation, token, values) {
    const headers = basic(RESOURCE_SERVER);
    const message = { method: 'POST', path: '/oauth2/introspect', headers, body: { token } };
    const { ok, json } = await this.caller.send({ operation, surface: 'management', ...message });
    if (ok) this.caller.compare(operation, json, values);
  }
}

/** The session of an access token. @param {string} token */
function sessionOf(token) {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sid;
}
