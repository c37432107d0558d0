// @ts-check
import { ORGANIZATION } from '../site.js';
import { Pool } from './pool.js';
import { ADMIN_TOKEN, AGENT, BACKEND, basic, bearer } from './site.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const SESSION_COUNT = 50;
const PREPARED_COUNT = 20;
const END_RATIO = 0.2;
const AUTHORIZE = `/?${new URLSearchParams({
  response_type: 'code',
  client_id: BACKEND.id,
  redirect_uri: BACKEND.redirectUri,
  scope: 'customers:own',
})}`;

/** What agents do: they sign in for the backend, refresh their tokens and act for customers. Checks each response. */
export class Agents {
  /** @type {Pool<{ accessToken: string, refreshToken: string }>} */
  #sessions = new Pool(SESSION_COUNT);

  /** @param {import('./caller.js').Caller} caller @param {import('./customers.js').Customers} customers */
  constructor(caller, customers) {
    this.caller = caller;
    this.customers = customers;
  }

  /** Signs in before the load begins, so that every operation has a session. */
  async prepare() {
    for (let signedIn = 0; signedIn < PREPARED_COUNT; signedIn++) await this.signIn();
  }

  /** Signs in at the authorization page and exchanges the code, as the backend does. */
  async signIn() {
    const page = await this.#openPage('', 'authorization page');
    if (!page.ok) return;
    const hidden = [...page.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
    const fields = Object.fromEntries(hidden.map(([, name, value]) => [name, value?.replaceAll('&amp;', '&')]));
    const session = await this.caller.send({
      operation: 'sign-in',
      method: 'POST',
      path: '/sign-in',
      headers: { ...FORM, origin: 'http://localhost', cookie: page.cookies },
      body: new URLSearchParams({ ...fields, ...AGENT }).toString(),
    });
    if (!session.ok) return;
    const redirect = await this.#openPage([page.cookies, session.cookies].join('; '), 'authorization response');
    if (!redirect.ok) return;
    const code = new URL(redirect.location || 'none:').searchParams.get('code');
    if (!code) return this.caller.records.reportWrong('authorization response', 'no code in the redirect');
    const body = { grant_type: 'authorization_code', code, redirect_uri: BACKEND.redirectUri };
    const { ok, json } = await this.#requestToken('exchange of an authorization code', body);
    if (ok) await this.#accept('exchange of an authorization code', json);
  }

  /** Without a response, the agent keeps its refresh token and repeats the request later (protocol §3.9). */
  async refresh() {
    const session = this.#sessions.take();
    if (!session) return;
    const operation = 'refresh of an agent';
    const body = { grant_type: 'refresh_token', refresh_token: session.refreshToken };
    const { ok, json } = await this.#requestToken(operation, body);
    if (!ok) return this.#sessions.put(session);
    if (Math.random() >= END_RATIO) return this.#accept(operation, json);
    // ends the new access token, with which nothing was made yet; the session goes on with the previous one
    const headers = bearer(json.access_token);
    this.#sessions.put({ accessToken: session.accessToken, refreshToken: json.refresh_token });
    await this.caller.send({ operation: 'end of an agent token', method: 'DELETE', path: '/v2/token', headers });
  }

  createCustomer() {
    return this.#requestCustomer('agent token grant, new customer', undefined);
  }

  /** Gets a token for a customer that exists. */
  actForCustomer() {
    return this.customers.withCustomer((entityId) =>
      this.#requestCustomer('agent token grant, existing customer', entityId),
    );
  }

  transfer() {
    return this.#withSession(({ accessToken }) =>
      this.customers.withCustomer((entityId) => {
        const fields = { bearer_type: 'agent', customer_id: entityId };
        const customer = { entityId, transfers: 0 };
        return this.customers.transferAs('identity transfer by an agent', accessToken, customer, fields);
      }),
    );
  }

  /** The operator asks about an agent's token. */
  introspect() {
    return this.#withSession(async ({ accessToken }) => {
      const operation = 'introspection by the operator';
      const { ok, json } = await this.caller.send({
        operation,
        surface: 'management',
        method: 'POST',
        path: '/oauth2/introspect',
        headers: bearer(ADMIN_TOKEN),
        body: { token: accessToken },
      });
      if (ok) this.caller.compare(operation, json, { active: true, aud: 'agent-api' });
    });
  }

  /** @param {string} operation @param {string | undefined} entityId */
  #requestCustomer(operation, entityId) {
    return this.#withSession(async ({ accessToken }) => {
      const { ok, json } = await this.caller.send({
        operation,
        method: 'POST',
        path: '/v2/customer/token',
        headers: bearer(accessToken),
        body: { grant_type: 'agent_token', client_id: BACKEND.id, response_type: 'token', entity_id: entityId },
      });
      if (ok) await this.customers.tokens.accept(operation, json, entityId ?? json.entity_id, BACKEND.id, 0);
    });
  }

  /** @param {(session: { accessToken: string }) => Promise<unknown>} use */
  async #withSession(use) {
    const session = this.#sessions.take();
    if (!session) return;
    await use(session);
    this.#sessions.put(session);
  }

  /** @param {string} operation @param {any} json */
  async #accept(operation, json) {
    const claims = { aud: 'agent-api', client_id: BACKEND.id, organization_id: ORGANIZATION, scope: 'customers:own' };
    await this.caller.verify(operation, json.access_token, claims);
    this.#sessions.put({ accessToken: json.access_token, refreshToken: json.refresh_token });
  }

  /** @param {string} cookie @param {string} operation */
  #openPage(cookie, operation) {
    /** @type {Record<string, string>} */
    const headers = cookie ? { cookie } : {};
    return this.caller.send({ operation, route: '/', method: 'GET', path: AUTHORIZE, headers });
  }

  /** @param {string} operation @param {object} body */
  #requestToken(operation, body) {
    return this.caller.send({ operation, method: 'POST', path: '/v2/token', headers: basic(BACKEND), body });
  }
}
