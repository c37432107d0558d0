import { createHash } from 'node:crypto';
import { targetOf } from '../support/authorization-page.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_ORIGIN,
  ACME_PAGE,
  ACME_PREFIX,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  SHARED,
  SHARED_SITE,
} from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import type { Browser, FuzzRequest } from './fuzz-request.js';
import type { Random } from './random.js';

export interface Role {
  client_id: string;
  organization_id: string;
  redirect_uri: string;
  origin?: string;
  response_type: string;
}

const role = (
  client_id: string,
  organization_id: string,
  redirect_uri: string,
  origin?: string,
  response_type = 'token',
) => ({ client_id, organization_id, redirect_uri, response_type, ...(origin && { origin }) }) as Role;

export const BACKEND_ROLE = role(ACME_BACKEND, ACME, 'https://backend.acme.example/callback', undefined, 'code');

export const CAST: readonly Role[] = [
  role(ACME_SITE, ACME, ACME_PAGE, ACME_ORIGIN),
  role(ACME_SITE, ACME, ACME_PAGE, ACME_ORIGIN),
  role(ACME_PREFIX, ACME, 'https://acme.example/app/page', ACME_ORIGIN),
  role(ACME_NATIVE, ACME, 'example.acme:/callback', 'capacitor://localhost', 'code'),
  BACKEND_ROLE,
  role(RIVAL_SITE, RIVAL, `${RIVAL_ORIGIN}/`, RIVAL_ORIGIN),
  role(SHARED_SITE, SHARED, 'https://shared.example/', 'https://shared.example'),
  role(PUBLIC_SITE, ACME, `${PUBLIC_ORIGIN}/`, PUBLIC_ORIGIN),
  role(PUBLIC_SITE, RIVAL, `${PUBLIC_ORIGIN}/`, PUBLIC_ORIGIN),
];

export const ADMIN_TOKEN = 'fuzz-admin-token-with-enough-entropy-0123456789';
export const RESOURCE_SERVER = {
  id: 'customer-chat-api',
  secret: 'fuzz-resource-server-secret-0123456789',
  audiences: ['customer-api', 'agent-api'],
  events: 'all',
};

/** One PKCE pair for all requests. */
export const VERIFIER = 'fuzz-verifier-of-at-least-forty-three-characters';
export const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');

/** A limited number of tokens, codes or ids from the service, which later requests may use. */
class Pool<Item> {
  private readonly items: Item[] = [];

  constructor(private readonly size = 60) {}

  add(item: Item): void {
    if (this.items.length < this.size) this.items.push(item);
    else this.items[Math.floor(Math.random() * this.size)] = item;
  }

  pick(random: Random): Item | undefined {
    return this.items[random.below(Math.max(this.items.length, 1))];
  }

  remove(item: Item): void {
    const at = this.items.indexOf(item);
    if (at >= 0) this.items.splice(at, 1);
  }
}

export interface CookiePair {
  id: string;
  secret: string;
}

/** A code with the parameters that its redemption needs. */
export interface Code {
  code: string;
  client_id: string;
  code_verifier?: string;
}

/** The tokens, codes, cookies and ids that the service has returned so far. */
export class World {
  readonly pairs = new Pool<CookiePair>();
  readonly customerTokens = new Pool<string>();
  /** Agent access tokens that requests may revoke. */
  readonly agentTokens = new Pool<string>();
  readonly transferCodes = new Pool<Code>();
  readonly authorizationCodes = new Pool<Code>();
  readonly refreshTokens = new Pool<string>();
  readonly browsers = new Pool<Browser>(30);
  /** Keys of registry entries that the admin API has created, by list. */
  readonly createdKeys = new Map<string, Pool<string>>();
  private readonly customers = new Map<string, Pool<string>>();

  /** @param agents agent access tokens by organization that no request revokes */
  constructor(readonly agents: Record<string, string>) {}

  customersOf(organization: string): Pool<string> {
    return poolAt(this.customers, organization);
  }

  createdKeysOf(list: string): Pool<string> {
    return poolAt(this.createdKeys, list);
  }
}

function poolAt(pools: Map<string, Pool<string>>, key: string): Pool<string> {
  const pool = pools.get(key) ?? new Pool<string>();
  pools.set(key, pool);
  return pool;
}

/** Adds the tokens, codes and cookies of a response to the world, so that later requests can use them. */
export function harvest(world: World, request: FuzzRequest, response: TestResponse): void {
  if (response.status >= 400) return;
  request.spend?.();
  if (request.browser) storeCookies(request.browser, response);
  fromLocation(world, targetOf(response));
  if (response.body) fromBody(world, request, response.body);
  const pair = cookiesOf(response);
  if (pair?.id && pair.secret) world.pairs.add(pair);
}

export function cookiesOf({ cookies }: TestResponse): CookiePair | undefined {
  const [id, secret] = ['cid', 'cst'].map((name) =>
    cookies.map((line) => new RegExp(`^__svc_${name}=([^;]*)`).exec(line)?.[1]).find((value) => value !== undefined),
  );
  return id !== undefined && secret !== undefined ? { id, secret } : undefined;
}

function storeCookies(browser: Browser, response: TestResponse): void {
  for (const line of response.cookies) {
    const [, name = '', value = ''] = /^(__Host-\w+)=([^;]*)/.exec(line) ?? [];
    if (value === '') browser.cookies.delete(name);
    else browser.cookies.set(name, value);
  }
}

/** The authorization page returns codes and tokens in the `Location` header. */
function fromLocation(world: World, location: string): void {
  const [target = '', ...rest] = location.split(/[?#]/);
  const parameters = new URLSearchParams(rest.join('&'));
  const code = parameters.get('code');
  const token = parameters.get('access_token');
  if (token) world.agentTokens.add(token);
  if (!code) return;
  const client_id = target.startsWith('https://') ? 'acme-backend' : 'acme-native';
  world.authorizationCodes.add({ code, client_id });
}

function fromBody(world: World, request: FuzzRequest, body: Record<string, unknown>): void {
  const text = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : undefined);
  const entity = text('entity_id');
  const organization = text('organization_id');
  const token = text('access_token');
  const refresh = text('refresh_token');
  const transfer = text('identity_transfer_token');
  if (entity && organization) world.customersOf(organization).add(entity);
  if (token) (entity ? world.customerTokens : world.agentTokens).add(token);
  if (refresh) world.refreshTokens.add(refresh);
  if (transfer) world.transferCodes.add({ code: transfer, ...transferredTo(request) });
  const key = text('client_id') ?? text('id');
  const [, list] = /^\/admin\/([^/?]+)/.exec(request.target) ?? [];
  if (key && list && request.method === 'POST') world.createdKeysOf(list).add(key);
}

function transferredTo(request: FuzzRequest): { client_id: string; code_verifier?: string } {
  const parameters = JSON.parse(new TextDecoder().decode(request.body)); // without a byte order mark
  return { client_id: String(parameters.client_id), ...(parameters.code_challenge && { code_verifier: VERIFIER }) };
}
