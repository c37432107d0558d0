import fc from 'fast-check';
import { encodeCursor } from '../../src/oauth/pages.js';
import { basic } from '../support/authorization-headers.js';
import { JWT_ASSERTION } from '../support/client-assertions.js';
import { ACME_AGENT, ACME_BACKEND, BACKEND_SECRET, RIVAL_AGENT } from '../support/test-registry.js';
import type { Fields } from './body-mutations.js';
import { type Browser, type FuzzRequest, setHeader } from './fuzz-request.js';
import type { Operation, Schema } from './operations.js';
import type { Random } from './random.js';
import { forgedToken } from './tokens.js';
import {
  ADMIN_TOKEN,
  BACKEND_ROLE,
  CAST,
  CHALLENGE,
  type Code,
  RESOURCE_SERVER,
  type Role,
  VERIFIER,
  type World,
} from './world.js';

/** A valid request in parts that mutations can still change. */
export interface Draft {
  request: FuzzRequest;
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
  return { request, path, query, fields, mediaType: body?.mediaType };
}

function sceneFor(operation: Operation, schema: Schema | undefined, world: World, random: Random): Scene {
  const asksForCode = schema?.properties?.code !== undefined;
  const isAgents = operation.path === '/v2/token';
  const codes = isAgents ? world.authorizationCodes : world.transferCodes;
  const isPage = operation.path === '/' || operation.bodies.some(({ schema: { properties } }) => properties?.request);
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
    ['request', 'email', 'code_verifier'].includes(name) ||
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

interface Scene {
  operation: Operation;
  role: Role;
  world: World;
  random: Random;
  browser?: Browser;
  code?: Code | undefined;
  forgedToken: boolean;
}

const uuidAt = (number: number) => `01890000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;

/** Values by parameter name. `undefined` means that the world has no value at the moment. */
const BY_NAME: Record<string, (scene: Scene) => unknown> = {
  client_id: ({ operation, role, code, random }) =>
    operation.path.startsWith('/admin/') ? `fz-client-${random.below(40)}` : (code?.client_id ?? role.client_id),
  organization_id: ({ role }) => role.organization_id,
  redirect_uri: ({ role }) => role.redirect_uri,
  response_type: ({ operation, role }) => (operation.path === '/' ? role.response_type : 'token'),
  group_id: ({ random }) => `group-${random.below(3)}`,
  entity_id: ({ world, role, random }) => world.customersOf(role.organization_id).pick(random),
  customer_id: ({ world, role, random }) => world.customersOf(role.organization_id).pick(random),
  code: ({ code }) => code?.code,
  code_verifier: ({ code }) => code?.code_verifier,
  code_challenge: () => CHALLENGE,
  code_challenge_method: () => 'S256',
  refresh_token: ({ world, random }) => world.refreshTokens.pick(random),
  client_secret: ({ operation }) =>
    operation.path.startsWith('/admin/') ? 'fz-secret-of-a-client-0123456789' : BACKEND_SECRET,
  client_assertion: ({ random }) => (random.chance(0.05) ? 'e30.e30.AAAA' : undefined),
  client_assertion_type: ({ random }) => (random.chance(0.05) ? JWT_ASSERTION : undefined),
  jwks: () => undefined,
  jwks_uri: ({ random }) => (random.chance(0.1) ? 'https://made.example/keys' : undefined),
  federated: () => undefined,
  token: tokenToInspect,
  request: ({ role }) =>
    `response_type=${role.response_type}&client_id=${role.client_id}&redirect_uri=${encodeURIComponent(role.redirect_uri)}`,
  email: ({ operation, random }) =>
    operation.path.startsWith('/admin/')
      ? `fz-${random.below(20)}@fz.example`
      : random.pick([ACME_AGENT, RIVAL_AGENT]).email,
  password: ({ random }) => random.pick([ACME_AGENT, RIVAL_AGENT]).password,
  scope: () => 'customers:own',
  scopes: () => ['customers:own'],
  decision: ({ random }) => random.pick(['allow', 'deny']),
  prompt: ({ random }) => random.pick(['none', 'login', 'consent']),
  state: () => 'fz-state',
  key: ({ operation, world, random }) => world.createdKeysOf(listOf(operation)).pick(random),
  id: ({ operation, random }) =>
    operation.path.includes('organizations') ? uuidAt(random.below(40)) : `fz-server-${random.below(40)}`,
  after: () => undefined,
  // a longer wait for an event that does not come is longer than the patience of the fuzzer
  wait: ({ random }) => random.pick(['0', '1']),
  cursor: ({ operation, random }) => encodeCursor(listOf(operation).replace('-', '_'), `fz-client-${random.below(40)}`),
  name: ({ random }) => random.pick(['fz', 'a name', '%', '_']),
  limit: ({ random }) => random.pick(['1', '20', '200']),
  redirect_uris: () => ['https://made.example/callback'],
  origins: () => ['https://made.example'],
  audiences: () => ['customer-api'],
  events: ({ role, random }) => random.pick(['all', [role.organization_id]]),
  // only some clients may have one
  agent: () => undefined,
  grant_types: () => ['cookie'],
  grants: () => ({}),
  license: () => ({ chat_between_groups: true }),
  public_clients: ({ random }) => random.pick(['all', ['fz-client-1'], []]),
  verifier: () => VERIFIER,
};

/** A valid value, by the name of the parameter or else by its schema. */
function validValue(name: string, schema: Schema, scene: Scene): unknown {
  const only = schema.const ?? (schema.enum && scene.random.pick(schema.enum));
  if (only !== undefined) return only;
  return Object.hasOwn(BY_NAME, name) ? BY_NAME[name]?.(scene) : fromSchema(schema, scene.random);
}

/** The registry list in the path of an admin route. */
function listOf({ path }: Operation): string {
  return path.split('/')[2] ?? '';
}

function tokenToInspect(scene: Scene): string | undefined {
  const { world, random } = scene;
  const token = world.customerTokens.pick(random) ?? Object.values(world.agents)[0];
  if (token === undefined || random.chance(0.5)) return token;
  scene.forgedToken = true;
  return forgedToken(token, random);
}

const textsByPattern = new Map<string, string[]>();

/** A value for parameters of grants that the fuzzer does not know. */
function fromSchema(schema: Schema, random: Random): unknown {
  const { type, pattern, minimum = 0, minLength = 1, items, oneOf, anyOf } = schema;
  const alternatives = oneOf ?? anyOf;
  if (alternatives) return fromSchema(random.pick(alternatives), random);
  if (pattern !== undefined) return random.pick(textsMatching(pattern));
  if (type === 'integer' || type === 'number') return minimum + random.below(100);
  if (type === 'boolean') return random.chance(0.5);
  if (type === 'array') return items ? [fromSchema(items, random)] : [];
  if (type === 'object') return {};
  if (type === 'null') return null;
  return 'fz'.padEnd(minLength, 'z');
}

function textsMatching(pattern: string): string[] {
  const known =
    textsByPattern.get(pattern) ?? fc.sample(fc.stringMatching(new RegExp(pattern)), { seed: 1, numRuns: 20 });
  textsByPattern.set(pattern, known);
  return known;
}
