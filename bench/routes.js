// @ts-check
import { CLIENT, customer, ORGANIZATION, RESOURCE_SERVER, tokenMaker, transferToken } from './site.js';

/** Different callers of each route: too many for the caches of the processor, as on a real site. */
const CALLER_COUNT = 20_000;
/** Exchanges of one round. Each needs its own transfer token. */
const EXCHANGE_COUNT = 10_000;

/**
 * @typedef {object} Route
 * @property {string} name
 * @property {boolean} [management] whether it is on the management port
 * @property {() => string[]} requests the bytes of the requests of the next round
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
    'returning customer': callers.map((n) => {
      const { entityId, secret } = customer(n);
      return token(
        { grant_type: 'cookie', organization_id: ORGANIZATION },
        `Cookie: __svc_cid=${entityId}; __svc_cst=${secret}`,
      );
    }),
    'new customer': [token({ grant_type: 'cookie', organization_id: ORGANIZATION })],
    'agent token': callers.map((n) =>
      token({ grant_type: 'agent_token', entity_id: customer(n).entityId }, `Authorization: Bearer ${agent}`),
    ),
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
  let exchanged = 0;
  const exchanges = () =>
    Array.from({ length: EXCHANGE_COUNT }, () =>
      token({ grant_type: 'identity_token', code: transferToken(++exchanged) }),
    );
  const measured = Object.entries(routes).map(([name, requests]) => ({
    name,
    management: name === 'introspection',
    requests: () => requests,
  }));
  return measured.toSpliced(4, 0, { name: 'transfer: exchange', management: false, requests: exchanges });
}

/** @param {Record<string, string>} parameters @param {string} [header] */
function token(parameters, header) {
  return json('/v2/customer/token', { client_id: CLIENT, response_type: 'token', ...parameters }, header);
}

/**
 * A POST of JSON with the Content-Type of browsers.
 *
 * @param {string} path @param {object} parameters @param {string} [header]
 */
function json(path, parameters, header) {
  return post(path, JSON.stringify(parameters), ['Content-Type: text/plain', header].filter(Boolean).join('\r\n'));
}

/** The bytes of a POST. @param {string} path @param {string} body @param {string} header */
export function post(path, body, header) {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** @param {string} path @param {string} header */
function get(path, header) {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`;
}
