import fc from 'fast-check';
import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';
import { cursorAfter } from '../../src/registry/page-query.js';
import { ACME_AGENT, BACKEND_SECRET, RIVAL_AGENT } from '../support/test-registry.js';
import { CHALLENGE, type Role, VERIFIER } from './cast.js';
import type { Operation, Schema } from './operations.js';
import { forgedToken } from './tokens.js';
import type { Browser, Code, World } from './world.js';

/** The context of one request. */
export interface Scene {
  operation: Operation;
  role: Role;
  world: World;
  random: Random;
  browser?: Browser;
  code?: Code | undefined;
  forgedToken: boolean;
}

const uuidAt = (number: number) => `01890000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
const DOCS_FILES = ['swagger-ui.css', 'start.js', 'index.html', 'swagger-ui-bundle.js', 'nothing'];

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
  token: tokenToInspect,
  csrf: ({ browser }) => browser?.csrf,
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
  flow: ({ random }) => random.pick(['button', 'redirect']),
  prompt: ({ random }) => random.pick(['none', 'login', 'consent']),
  state: () => 'fz-state',
  file: ({ random }) => random.pick(DOCS_FILES),
  key: ({ operation, world, random }) => world.createdKeysOf(listOf(operation)).pick(random),
  id: ({ operation, random }) =>
    operation.path.includes('organizations') ? uuidAt(random.below(40)) : `fz-server-${random.below(40)}`,
  after: () => undefined,
  cursor: ({ operation, random }) => cursorAfter(listOf(operation).replace('-', '_'), `fz-client-${random.below(40)}`),
  name: ({ random }) => random.pick(['fz', 'a name', '%', '_']),
  limit: ({ random }) => random.pick(['1', '20', '200']),
  redirect_uris: () => ['https://made.example/callback'],
  origins: () => ['https://made.example'],
  audiences: () => ['customer-api'],
  grant_types: () => ['cookie'],
  grants: () => ({}),
  license: () => ({ chat_between_groups: true }),
  public_clients: ({ random }) => random.pick(['all', ['fz-client-1'], []]),
  verifier: () => VERIFIER,
};

/** A valid value, by the name of the parameter or else by its schema. */
export function validValue(name: string, schema: Schema, scene: Scene): unknown {
  const only = schema.const ?? (schema.enum && scene.random.pick(schema.enum));
  if (only !== undefined) return only;
  return Object.hasOwn(BY_NAME, name) ? BY_NAME[name]?.(scene) : fromSchema(schema, scene.random);
}

/** The registry list in the path of an admin route. */
export function listOf({ path }: Operation): string {
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
