// @ts-check
import { createLocalJWKSet, jwtVerify } from 'jose';
import { exchange } from './exchange.js';

/**
 * @typedef {object} Call
 * @property {string} operation the name in the report
 * @property {'public' | 'management'} [surface]
 * @property {string} [route] in the report in place of the path
 * @property {{ status: number, error: string }} [expected] the error response that the request must get
 */

/** Sends requests to the processes in turn, records the responses, and verifies tokens with the published keys. */
export class Caller {
  /** @type {Map<string, number>} verified tokens by the id of their key */
  tokensByKey = new Map();
  /** @type {ReturnType<typeof createLocalJWKSet> | undefined} */
  #keys;

  /**
   * @param {import('./pods.js').Pods} pods @param {import('./records.js').Records} records @param {() => number} now
   */
  constructor(pods, records, now) {
    this.pods = pods;
    this.records = records;
    this.now = now;
  }

  /** @param {Call & import('./exchange.js').Message} call */
  async send({ operation, surface = 'public', route, expected, ...message }) {
    const from = this.now();
    const reply = await exchange(this.pods.next(), surface, message);
    const sent = { operation, route: `${message.method} ${route ?? message.path}`, status: reply.status, from };
    this.records.add({ ...sent, to: this.now() }, reply, expected);
    return { ...reply, ok: reply.status >= 200 && reply.status < 400 };
  }

  async fetchKeys() {
    const { ok, json } = await this.send({ operation: 'JWKS', method: 'GET', path: '/.well-known/jwks.json' });
    if (ok) this.#keys = createLocalJWKSet(json);
  }

  /**
   * Verifies an access token as a resource server does: with the published keys, which are fetched again for an unknown
   * key id.
   *
   * @param {string} operation @param {string} token @param {Record<string, unknown>} claims that the token must have
   */
  async verify(operation, token, claims) {
    const jws = token.slice(token.indexOf(':') + 1);
    const verified = await this.#verified(jws).catch((/** @type {Error} */ error) => error);
    if (verified instanceof Error) return this.records.reportWrong(operation, `the token: ${verified.message}`);
    const { kid = '' } = verified.protectedHeader;
    this.tokensByKey.set(kid, (this.tokensByKey.get(kid) ?? 0) + 1);
    this.compare(operation, verified.payload, claims);
  }

  /**
   * Records a wrong response if a value differs.
   *
   * @param {string} operation @param {any} actual @param {Record<string, unknown>} values
   */
  compare(operation, actual, values) {
    for (const [name, value] of Object.entries(values))
      if (actual?.[name] !== value)
        this.records.reportWrong(operation, `${name} is ${actual?.[name]} in place of ${value}`);
  }

  /** @param {string} jws */
  async #verified(jws) {
    if (!this.#keys) await this.fetchKeys();
    const verify = () => {
      if (!this.#keys) throw new Error('no key set');
      return jwtVerify(jws, this.#keys, { issuer: 'http://localhost', typ: 'at+jwt' });
    };
    try {
      return await verify();
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code !== 'ERR_JWKS_NO_MATCHING_KEY') throw error;
      await this.fetchKeys();
      return verify();
    }
  }
}
