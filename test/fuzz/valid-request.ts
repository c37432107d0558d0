import type { Fields } from '../../packages/conformance-kit/src/fuzz/body-mutations.js';
import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';
import { basic } from '../support/authorization-headers.js';
import { ACME_BACKEND, BACKEND_SECRET } from '../support/test-registry.js';
import { ADMIN_TOKEN, BACKEND_ROLE, CAST, RESOURCE_SERVER } from './cast.js';
import { type FuzzRequest, setHeader } from './fuzz-request.js';
import type { Operation, Schema } from './operations.js';
import { listOf, type Scene, validValue } from './valid-values.js';
import type { Browser, World } from './world.js';

/** A valid request in parts that mutations can still change. */
export interface Draft {
  request: FuzzRequest;
  operation: Operation;
  path: string;
  query: Fields;
  fields: Fields | undefined;
  mediaType: string | undefined;
}

/** A request to an operation that is valid, if the world contains the necessary tokens and codes. */
export function validRequest(operation: Operation, world: World, random: Random): Draft {
  const body = operation.bodies.length > 0 ? random.pick(operation.bodies) : undefined;
  const scene = sceneFor(operation, body?.schema, world, random);
  const request: FuzzRequest = {
    port: operation.port,
    method: operation.method,
    target: '',
    headers: [['Host', 'auth.example']],
    body: Buffer.alloc(0),
    chunked: random.chance(0.1),
    notes: [],
    forgedBearer: false,
    forgedToken: false,
    ...(scene.browser && { browser: scene.browser }),
  };
  const path = operation.path.replace(/\{(\w+)\}/g, (_all, name) =>
    encodeURIComponent(String(validValue(name, {}, scene) ?? 'none')),
  );
  const query = operation.parameters
    .filter((parameter) => parameter.in === 'query' && (parameter.required || random.chance(0.3)))
    .flatMap(({ name, schema }) => fieldOf(name, schema, scene));
  const fields = body && bodyFields(body.schema, scene);
  addCredentials(request, scene);
  addCookies(request, scene);
  if (scene.role.origin && random.chance(0.4)) setHeader(request, 'Origin', scene.role.origin);
  if (operation.path === '/sign-in')
    setHeader(request, 'X-Forwarded-For', `10.${random.below(256)}.${random.below(256)}.7`);
  if (body) setHeader(request, 'Content-Type', body.mediaType);
  request.forgedToken = scene.forgedToken;
  setSpend(request, scene, path);
  return { request, operation, path, query, fields, mediaType: body?.mediaType };
}

function sceneFor(operation: Operation, schema: Schema | undefined, world: World, random: Random): Scene {
  const asksForCode = schema?.properties?.code !== undefined;
  const isAgents = operation.path === '/v2/token';
  const codes = isAgents ? world.authorizationCodes : world.transferCodes;
  const isPage = operation.path === '/' || operation.bodies.some(({ schema: { properties } }) => properties?.csrf);
  return {
    operation,
    world,
    random,
    role: isAgents ? BACKEND_ROLE : random.pick(CAST),
    forgedToken: false,
    ...(asksForCode && { code: codes.pick(random) }),
    ...(isPage && { browser: browserOf(world, random) }),
  };
}

function browserOf(world: World, random: Random): Browser {
  const known = random.chance(0.9) ? world.browsers.pick(random) : undefined;
  if (known) return known;
  const browser: Browser = { cookies: new Map() };
  world.browsers.add(browser);
  return browser;
}

function bodyFields({ properties = {}, required = [] }: Schema, scene: Scene): Fields {
  const isIncluded = (name: string) =>
    required.includes(name) ||
    ['csrf', 'request', 'email', 'code_verifier'].includes(name) ||
    scene.random.chance(likelihood(name, scene));
  return Object.entries(properties).flatMap(([name, schema]) => (isIncluded(name) ? fieldOf(name, schema, scene) : []));
}

/** Passwords are rare, because the service takes 20 ms to hash one. */
function likelihood(name: string, { operation }: Scene): number {
  if (name === 'password') return operation.path === '/sign-in' ? 1 : 0.05;
  return name === 'client_secret' && operation.path === '/v2/token' ? 1 : 0.5;
}

function fieldOf(name: string, schema: Schema, scene: Scene): Fields {
  const value = validValue(name, schema, scene);
  return value === undefined ? [] : [[name, value]];
}

function addCredentials(request: FuzzRequest, { operation, role, world, random }: Scene): void {
  const scheme = random.pick(operation.security.length > 0 ? operation.security : ['none']);
  const ofAgents = world.agents[role.organization_id] ?? Object.values(world.agents)[0];
  const isForCustomers = /customer\/(info|token)$/.test(operation.path) && operation.method !== 'POST';
  const endsAgents = operation.path === '/v2/token' && operation.method === 'DELETE';
  const bearer =
    isForCustomers || (operation.path.endsWith('identity_transfer') && random.chance(0.5))
      ? world.customerTokens.pick(random)
      : endsAgents
        ? world.agentTokens.pick(random)
        : ofAgents;
  const credentials = {
    none: undefined,
    bearer: bearer && `Bearer ${bearer}`,
    operator: `Bearer ${ADMIN_TOKEN}`,
    client: basic(ACME_BACKEND, BACKEND_SECRET).authorization,
    resource_server: basic(RESOURCE_SERVER.id, RESOURCE_SERVER.secret).authorization,
  }[scheme];
  if (credentials) setHeader(request, 'Authorization', credentials);
}

function addCookies(request: FuzzRequest, { operation, world, random, browser }: Scene): void {
  const pair = operation.path.startsWith('/v2/customer') && random.chance(0.7) ? world.pairs.pick(random) : undefined;
  if (pair) setHeader(request, 'Cookie', `__svc_cid=${pair.id}; __svc_cst=${pair.secret}`);
  if (browser?.cookies.size) {
    setHeader(request, 'Cookie', Array.from(browser.cookies, ([name, value]) => `${name}=${value}`).join('; '));
  }
}

/** Half of the single-use codes stay in the world, so that later requests use them again. */
function setSpend(request: FuzzRequest, { operation, world, code, random }: Scene, path: string): void {
  const isReusable = random.chance(0.5);
  request.spend = () => {
    const bearer = request.headers.find(([name]) => name === 'Authorization')?.[1].slice('Bearer '.length) ?? '';
    if (operation.method === 'DELETE') {
      world.customerTokens.remove(bearer);
      world.agentTokens.remove(bearer);
      if (operation.path.startsWith('/admin/'))
        world.createdKeysOf(listOf(operation)).remove(decodeURIComponent(path.split('/').at(-1) ?? ''));
    }
    if (code && !isReusable) {
      world.transferCodes.remove(code);
      world.authorizationCodes.remove(code);
    }
  };
}
