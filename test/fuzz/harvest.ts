import { VERIFIER } from './cast.js';
import { type FuzzRequest } from './fuzz-request.js';
import { type Reply, replyCookies, replyHeader } from './reply.js';
import type { Browser, World } from './world.js';

/** Adds the tokens, codes and cookies of a response to the world, so that later requests can use them. */
export function harvest(world: World, request: FuzzRequest, reply: Reply): void {
  if (reply.status >= 400) return;
  request.spend?.();
  if (request.browser) storeCookies(request.browser, reply);
  fromLocation(world, replyHeader(reply, 'location') ?? '');
  if (replyHeader(reply, 'content-type')?.startsWith('application/json') && reply.text !== '') {
    fromBody(world, request, JSON.parse(reply.text), replyCookies(reply));
  }
}

function storeCookies(browser: Browser, reply: Reply): void {
  for (const line of replyCookies(reply)) {
    const [, name = '', value = ''] = /^(__Host-\w+)=([^;]*)/.exec(line) ?? [];
    if (value === '') browser.cookies.delete(name);
    else browser.cookies.set(name, value);
  }
  const [, csrf] = /name="csrf" value="([^"]*)"/.exec(reply.text) ?? [];
  if (csrf !== undefined) browser.csrf = csrf;
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

function fromBody(world: World, request: FuzzRequest, body: Record<string, unknown>, cookies: string[]): void {
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
  const id = cookies.map((line) => /^__svc_cid=([^;]*)/.exec(line)?.[1]).find(Boolean);
  const secret = cookies.map((line) => /^__svc_cst=([^;]*)/.exec(line)?.[1]).find(Boolean);
  if (id && secret) world.pairs.add({ id, secret });
  const key = text('client_id') ?? text('id');
  const [, list] = /^\/admin\/([^/?]+)/.exec(request.target) ?? [];
  if (key && list && request.method === 'POST') world.createdKeysOf(list).add(key);
}

function transferredTo(request: FuzzRequest): { client_id: string; code_verifier?: string } {
  const parameters = JSON.parse(request.body.toString());
  return { client_id: String(parameters.client_id), ...(parameters.code_challenge && { code_verifier: VERIFIER }) };
}
