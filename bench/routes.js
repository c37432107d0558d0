// @ts-check
import { get, inNewOrder, inPortions, json, newRequests, SINGLE_USE, token } from './requests.js';
import {
  CLIENT,
  CODE_VERIFIER,
  challengedToken,
  customer,
  customerOfYesterday,
  externalId,
  ORGANIZATION,
  ORIGIN,
  RESOURCE_SERVER,
  refreshToken,
  tokenMaker,
  transferToken,
} from './site.js';

/**
 * Different callers of each route: too many for the caches of the processor, as on a real site, and for the tokens that
 * the service remembers.
 */
const CALLER_COUNT = 20_000;
/**
 * Tokens of a row with repeated tokens: few enough for the service to remember. Each round repeats others, because a
 * customer may have 60 unredeemed transfer tokens.
 */
const REPEATED_TOKEN_COUNT = 1_000;

/** The last route ends the sessions of the callers. */
const ORDER = [
  'returning customer',
  'new customer',
  'returning, first call of the day',
  'agent token',
  'agent token, new tokens',
  'external_id',
  'transfer: create',
  'transfer: create, new tokens',
  'transfer: exchange',
  'remember',
  'refresh_token',
  'info',
  'info, new tokens',
  'introspection',
  'introspection, new tokens',
  'end_sessions',
];

/**
 * @typedef {object} Route
 * @property {string} name
 * @property {boolean} [management] whether it is on the management port
 * @property {() => string[]} requests the bytes of the requests of the next round
 * @property {number} [maxSeconds] the longest round for which there are requests
 */

/**
 * The routes to measure.
 *
 * @param {string} keysFile
 * @param {number} [customers] the number of customers in the database; the callers are spread evenly over them
 * @returns {Promise<Route[]>}
 */
export async function routesOf(keysFile, customers = CALLER_COUNT) {
  const tokens = await tokenMaker(keysFile);
  const agent = await tokens.ofAgent();
  const callers = Array.from(
    { length: CALLER_COUNT },
    (_, index) => 1 + Math.floor((index * customers) / CALLER_COUNT),
  );
  const bearers = await Promise.all(callers.map((n) => tokens.ofCustomer(n)));
  const basic = Buffer.from(`${RESOURCE_SERVER.id}:${RESOURCE_SERVER.secret}`).toString('base64');
  const routes = {
    'returning customer': callers.map((n) => visit(customer(n))),
    'new customer': [token({ grant_type: 'cookie', organization_id: ORGANIZATION })],
    'agent token': callers.map((n) => agentToken(n, agent)),
    external_id: callers.map((n) =>
      token({ grant_type: 'agent_token', external_id: externalId(n) }, `Authorization: Bearer ${agent}`),
    ),
    end_sessions: callers.map((n) =>
      json('/v2/customer/end_sessions', { customer_id: customer(n).entityId }, `Authorization: Bearer ${agent}`),
    ),
  };
  const withBearers = {
    'transfer: create': bearers.map((bearer) =>
      json(
        '/v2/customer/identity_transfer',
        { bearer_type: 'customer', client_id: CLIENT },
        `Authorization: Bearer ${bearer}`,
      ),
    ),
    info: bearers.map((bearer) => get('/v2/customer/info', `Authorization: Bearer ${bearer}`)),
    introspection: bearers.map((bearer) =>
      json('/oauth2/introspect', { token: bearer }, `Authorization: Basic ${basic}`),
    ),
  };
  const agents = await Promise.all(callers.map(() => tokens.ofAgent()));
  const withNewTokens = {
    ...withBearers,
    'agent token': callers.map((n, index) => agentToken(n, /** @type {string} */ (agents[index]))),
  };
  const single = {
    'returning, first call of the day': (/** @type {number} */ n) => visit(customerOfYesterday(n)),
    'transfer: exchange': (/** @type {number} */ n) => token({ grant_type: 'identity_token', code: transferToken(n) }),
    remember: (/** @type {number} */ n) =>
      token(
        {
          grant_type: 'identity_token',
          code: challengedToken(n),
          code_verifier: CODE_VERIFIER,
          remember: 'browser',
        },
        `Origin: ${ORIGIN}`,
      ),
    refresh_token: (/** @type {number} */ n) => token({ grant_type: 'refresh_token', refresh_token: refreshToken(n) }),
  };
  return [
    ...Object.entries(routes).map(([name, requests]) => ({ name, requests: () => requests })),
    ...Object.entries(withBearers).map(([name, requests]) => ({
      name,
      management: name === 'introspection',
      requests: inPortions(requests, REPEATED_TOKEN_COUNT),
    })),
    ...Object.entries(withNewTokens).map(([name, requests]) => ({
      name: `${name}, new tokens`,
      management: name === 'introspection',
      requests: inNewOrder(requests),
    })),
    ...Object.entries(single).map(([name, request]) => ({
      name,
      requests: newRequests(request),
      maxSeconds: SINGLE_USE.seconds,
    })),
  ].toSorted((one, other) => ORDER.indexOf(one.name) - ORDER.indexOf(other.name));
}

/** A request with the identity cookies of a browser. @param {ReturnType<typeof customer>} customer */
function visit({ entityId, secret }) {
  const cookie = `Cookie: __svc_cid=${entityId}; __svc_cst=${secret}`;
  return token({ grant_type: 'cookie', organization_id: ORGANIZATION }, cookie);
}

/** An agent's request for a token of the n-th customer. @param {number} n @param {string} bearer */
function agentToken(n, bearer) {
  return token({ grant_type: 'agent_token', entity_id: customer(n).entityId }, `Authorization: Bearer ${bearer}`);
}
