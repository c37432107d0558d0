/** What customers, agents, resource servers and the operator do. Each sequence is what one of them does in one go. */
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { basic, bearer } from '../../test/support/authorization-headers.js';
import { AGENT, BACKEND, CLIENT, ORGANIZATION, RESOURCE_SERVER } from '../support/site.js';
import type { Call, Caller } from './caller.js';

const ADMIN_TOKEN = 'token-of-the-operator-of-the-soak-0123456789';
export const ADMIN_TOKENS = `soak:all:${ADMIN_TOKEN}`;
const TOKEN = '/v2/customer/token';
const INFO = '/v2/customer/info';
const FORM = { 'content-type': 'application/x-www-form-urlencoded', origin: 'http://localhost' };
const INTROSPECT = '/oauth2/introspect';
const CLIENTS = '/admin/clients';
const AUTHORIZE = `/?${new URLSearchParams({
  response_type: 'code',
  client_id: BACKEND.id,
  redirect_uri: BACKEND.redirectUri,
  scope: 'customers:own',
})}`;
const COOKIE_GRANT = { grant_type: 'cookie', client_id: CLIENT, response_type: 'token', organization_id: ORGANIZATION };
const UNKNOWN_TOKEN = `dev:${'x'.repeat(43)}`;
/** From a change of the registry until every process has read it. */
const REGISTRY_READ_MS = 10_000;

/** Requests that must get an error response. */
const DELIBERATE_ERRORS: [number, string, Omit<Call, 'operation'>][] = [
  [400, 'invalid_request', { path: TOKEN, body: { ...COOKIE_GRANT, client_id: 'unknown' } }],
  [400, 'invalid_request', { path: TOKEN, body: '{' }],
  [400, 'unsupported_grant_type', { path: TOKEN, body: { ...COOKIE_GRANT, grant_type: 'unknown' } }],
  [
    400,
    'invalid_grant',
    { path: TOKEN, body: { client_id: CLIENT, grant_type: 'identity_token', code: UNKNOWN_TOKEN } },
  ],
  [401, 'invalid_token', { method: 'GET', path: INFO }],
  [401, 'invalid_client', { isManagement: true, path: INTROSPECT, body: { token: UNKNOWN_TOKEN } }],
  [404, 'not_found', { method: 'GET', path: '/unknown' }],
  [405, 'method_not_allowed', { method: 'PUT', path: TOKEN }],
];

/** Things that one sequence at a time uses. So no sequence sees the effects of another one that is in progress. */
class Pool<Item> {
  private readonly items: Item[] = [];

  put(item: Item): void {
    this.items.push(item);
  }

  /** Uses a random item, if there is one. */
  async use(work: (item: Item) => Promise<void>): Promise<void> {
    const [item] = this.items.splice(Math.floor(Math.random() * this.items.length), 1);
    if (item) await work(item).finally(() => this.items.push(item));
  }
}

function randomOf<Item>(items: Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}

export class Sequences {
  private readonly browsers = new Pool<{ entityId: string; cookies: string; token: string }>();
  private readonly agentSessions = new Pool<{ token: string; refreshToken: string }>();
  /** Clients of the site. Changes of the registry add further ones. */
  private readonly clients = [CLIENT];

  constructor(private readonly caller: Caller) {}

  /** Begins a random sequence of the mix. */
  begin(): Promise<void> {
    const mix: [percent: number, begin: () => Promise<void>][] = [
      [45, () => this.visit()],
      [12, () => this.arrive()],
      [
        15,
        () => this.browsers.use(({ token, entityId }) => this.transfer(token, entityId, { bearer_type: 'customer' })),
      ],
      [18, () => this.actAsAgent()],
      [3, () => this.refreshAgent()],
      [1, () => this.signInAgent()],
      [6, () => this.sendDeliberateError()],
    ];
    return randomOf(mix.flatMap(([percent, begin]) => Array(percent).fill(begin)))();
  }

  private async arrive(): Promise<void> {
    this.browsers.put(await this.useCookies('cookie grant, new customer', { entityId: '', cookies: '' }));
  }

  /** Also uses the token of the visit before, which another key may have signed. */
  private visit(): Promise<void> {
    return this.browsers.use(async (browser) => {
      const { token, cookies, entityId } = browser;
      await this.readInfo(token, entityId);
      Object.assign(browser, await this.useCookies('cookie grant, returning customer', browser));
      if (browser.cookies !== cookies) this.caller.wrong.push('cookie grant, returning customer: the cookies differ');
    });
  }

  /** The agent gets a token for a new customer or an existing one, or transfers the customer. */
  private actAsAgent(): Promise<void> {
    return this.agentSessions.use(async ({ token }) => {
      if (Math.random() < 0.3) return this.requestAsAgent(token, undefined);
      await this.browsers.use(async ({ entityId }) => {
        if (Math.random() < 0.3) await this.transfer(token, entityId, { bearer_type: 'agent', customer_id: entityId });
        else await this.requestAsAgent(token, entityId);
      });
    });
  }

  /** Without a response, the agent keeps its refresh token and repeats the request later (protocol §3.9). */
  private refreshAgent(): Promise<void> {
    return this.agentSessions.use(async (session) => {
      const body = { grant_type: 'refresh_token', refresh_token: session.refreshToken };
      Object.assign(session, await this.requestAgentToken('refresh of an agent', body));
    });
  }

  /** Signs in at the authorization page and exchanges the code, as the backend does. */
  async signInAgent(): Promise<void> {
    const open = (operation: string, cookie: string) =>
      this.caller.send({ operation, method: 'GET', path: AUTHORIZE, headers: { cookie } });
    const page = await open('authorization page', '');
    const hidden = [...page.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
    const fields = Object.fromEntries(hidden.map(([, name, value]) => [name, value?.replaceAll('&amp;', '&')]));
    const signedIn = await this.caller.send({
      operation: 'sign-in',
      path: '/sign-in',
      headers: { ...FORM, cookie: page.cookies },
      body: new URLSearchParams({ ...fields, ...AGENT }).toString(),
    });
    const { location } = await open('authorization response', [page.cookies, signedIn.cookies].join('; '));
    const code = new URL(location).searchParams.get('code');
    const body = { grant_type: 'authorization_code', code, redirect_uri: BACKEND.redirectUri };
    this.agentSessions.put(await this.requestAgentToken('exchange of an authorization code', body));
  }

  private async sendDeliberateError(): Promise<void> {
    const [status, error, call] = randomOf(DELIBERATE_ERRORS);
    await this.caller.send({ operation: 'deliberate errors', ...call, expected: { status, error } });
  }

  /** The operator creates a client that customers then use, and creates, changes and deletes another one. */
  async changeRegistry(): Promise<void> {
    const used = `site-${this.clients.length}`;
    const deleted = `deleted-${this.clients.length}`;
    const change = (method: string, path: string, body?: object) => this.manage('admin API', path, body, method);
    await change('POST', CLIENTS, { client_id: used, name: 'Used', client_type: 'web' });
    await change('POST', CLIENTS, { client_id: deleted, name: 'Deleted', client_type: 'web' });
    await change('PATCH', `${CLIENTS}/${deleted}`, { name: 'Changed' });
    await change('DELETE', `${CLIENTS}/${deleted}`);
    await sleep(REGISTRY_READ_MS);
    this.clients.push(used);
  }

  private async useCookies(operation: string, browser: { entityId: string; cookies: string }) {
    const clientId = randomOf(this.clients);
    const headers = browser.cookies ? { cookie: browser.cookies } : {};
    const body = { ...COOKIE_GRANT, client_id: clientId };
    const { json, cookies } = await this.caller.send({ operation, path: TOKEN, headers, body });
    const entityId: string = browser.entityId || json.entity_id;
    await this.assertToken(operation, json, entityId, clientId);
    return { entityId, cookies, token: json.access_token as string };
  }

  /** Transfers a customer with PKCE. Then the customer or the operator ends the new token, in every process. */
  private async transfer(token: string, entityId: string, fields: object): Promise<void> {
    const verifier = randomBytes(32).toString('base64url');
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const { json: transfer } = await this.caller.send({
      operation: 'identity transfer',
      path: '/v2/customer/identity_transfer',
      headers: bearer(token),
      body: { client_id: CLIENT, code_challenge: challenge, ...fields },
    });
    const operation = 'exchange of a transfer token';
    const code = { code: transfer.identity_transfer_token, code_verifier: verifier };
    const body = { grant_type: 'identity_token', client_id: CLIENT, ...code };
    const { json } = await this.caller.send({ operation, path: TOKEN, body });
    await this.assertToken(operation, json, entityId, CLIENT);
    await this.introspect(json.access_token, { active: true, sub: entityId });
    const headers = bearer(json.access_token);
    if (Math.random() < 0.4)
      await this.manage('revocation by the operator', '/oauth2/revoke', { token: json.access_token });
    else await this.caller.send({ operation: 'end of a token', method: 'DELETE', path: TOKEN, headers });
    const expected = { status: 401, error: 'invalid_token' };
    await this.caller.send({ operation: 'info of an ended token', method: 'GET', path: INFO, headers, expected });
    await this.introspect(json.access_token, { active: false });
  }

  private async requestAsAgent(token: string, entityId: string | undefined): Promise<void> {
    const operation = `agent token grant, ${entityId ? 'existing' : 'new'} customer`;
    const body = { grant_type: 'agent_token', client_id: BACKEND.id, response_type: 'token', entity_id: entityId };
    const { json } = await this.caller.send({ operation, path: TOKEN, headers: bearer(token), body });
    await this.assertToken(operation, json, entityId ?? json.entity_id, BACKEND.id);
    await this.readInfo(json.access_token, json.entity_id);
  }

  private async requestAgentToken(operation: string, body: object) {
    const headers = basic(BACKEND.id, BACKEND.secret);
    const { json } = await this.caller.send({ operation, path: '/v2/token', headers, body });
    const claims = { aud: 'agent-api', client_id: BACKEND.id, organization_id: ORGANIZATION, scope: 'customers:own' };
    await this.caller.verify(operation, json.access_token, claims);
    return { token: json.access_token as string, refreshToken: json.refresh_token as string };
  }

  // biome-ignore lint/suspicious/noExplicitAny: a token response
  private async assertToken(operation: string, json: any, entityId: string, clientId: string): Promise<void> {
    this.caller.compare(operation, json, { entity_id: entityId, token_type: 'Bearer' });
    const claims = { sub: entityId, aud: 'customer-api', client_id: clientId, organization_id: ORGANIZATION };
    await this.caller.verify(operation, json.access_token, claims);
  }

  private async readInfo(token: string, entityId: string): Promise<void> {
    const operation = 'token info';
    const { json } = await this.caller.send({ operation, method: 'GET', path: INFO, headers: bearer(token) });
    this.caller.compare(operation, json, { entity_id: entityId, organization_id: ORGANIZATION });
  }

  private async introspect(token: string, values: Record<string, unknown>): Promise<void> {
    const operation = 'introspection';
    const headers = basic(RESOURCE_SERVER.id, RESOURCE_SERVER.secret);
    const call = { operation, path: INTROSPECT, isManagement: true, headers, body: { token } };
    this.caller.compare(operation, (await this.caller.send(call)).json, values);
  }

  private manage(operation: string, path: string, body?: object, method = 'POST') {
    const headers = bearer(ADMIN_TOKEN);
    return this.caller.send({ operation, method, path, isManagement: true, headers, ...(body && { body }) });
  }
}
