// @ts-check
/**
 * The floor: a server that gives the same responses as the service, with node:http, mysql2 and node:crypto only. It has
 * no framework, validation, registry, log, limits or deadline, and sends as few statements as correct responses need.
 * `bench/parts.js` measures which way is the cheapest. The floor has no cache and batches no statements. A run measures
 * both servers and reports their ratio.
 */
import { timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { agentOf, customerOfUser, endSessions } from './floor/customers.js';
import { ENDED, endOf, execute, executeTransaction, NEW_BROWSER, REVOKED, revocationOf } from './floor/database.js';
import { refresh } from './floor/refresh.js';
import { cookies, respond } from './floor/responses.js';
import { day, newSecret, partsOfSecret, sha256, tokenResponse, uuidv7, verified } from './floor/tokens.js';
import { exchange, transfer } from './floor/transfers.js';

const { PORT = '0' } = process.env;

/** Reads each row by a primary or unique key. Links from transfers need a second statement and are not measured. */
const RECOGNIZE_CUSTOMER = `
  SELECT browser.secret_hash, link.entity_id, link.seen_day, customer.generation
  FROM browser JOIN browser_customer link ON link.browser_id = browser.browser_id
  JOIN customer ON customer.entity_id = link.entity_id
  WHERE browser.browser_id = ? AND link.organization_id = ? AND link.group_id = ? AND link.origin <> 'transfer'
    AND customer.erased_at IS NULL AND customer.link_generation <= link.generation`;
const NOTE_DAY = 'UPDATE browser_customer SET seen_day = ? WHERE browser_id = ? AND entity_id = ?';
const NEW_CUSTOMER = `INSERT INTO customer
  (entity_id, organization_id, group_id, creator, generation, link_generation, version, last_token_day, created_at)
  VALUES (?, ?, '', 'browser', 0, 0, 0, ?, ?)`;
const NEW_LINK = `INSERT INTO browser_customer
  (browser_id, entity_id, organization_id, group_id, origin, began_in, generation, seen_day)
  VALUES (?, ?, ?, '', 'own', ?, 0, ?)`;
const CUSTOMER_OF_AGENT = `
  SELECT generation FROM customer
  WHERE entity_id = ? AND organization_id = ? AND erased_at IS NULL AND NOT ${REVOKED}
    AND EXISTS (SELECT 1 FROM agent WHERE id = ? AND COALESCE(generation, 0) <= ?)`;
const routes = new Map([
  ['POST /v2/customer/token', token],
  ['POST /v2/customer/identity_transfer', transfer],
  ['POST /v2/customer/end_sessions', endSessions],
  ['GET /v2/customer/info', info],
  ['POST /oauth2/introspect', introspect],
]);

const server = createServer((request, response) => {
  const route = routes.get(`${request.method} ${request.url}`);
  if (!route) return response.writeHead(404).end();
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => route(request, response, text));
});
server.listen(Number(PORT), '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  console.log(`port ${address.port}`);
});

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** @param {Request} request @param {Response} response @param {string} text */
function token(request, response, text) {
  const body = JSON.parse(text);
  if (body.external_id !== undefined) return customerOfUser(request, response, body);
  if (body.grant_type === 'agent_token') return agentToken(request, response, body);
  if (body.grant_type === 'identity_token') return exchange(response, body);
  if (body.grant_type === 'refresh_token') return refresh(response, body);
  const [, entityId] = /__svc_cid=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
  const [, secret] = /__svc_cst=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
  if (entityId && secret) returningCustomer(body, entityId, secret, response);
  else newCustomer(body, response);
}

/** @param {any} body @param {string} entityId @param {string} secret @param {Response} response */
function returningCustomer(body, entityId, secret, response) {
  const { browserId, random } = partsOfSecret(secret);
  const { organization_id } = body;
  execute(response, RECOGNIZE_CUSTOMER, [browserId, organization_id, ''], ([row]) => {
    if (!timingSafeEqual(Buffer.from(row.secret_hash), Buffer.from(sha256(random)))) throw new Error('wrong secret');
    if (row.entity_id !== entityId) throw new Error('the id of another scope, which is not measured');
    const { generation: gen } = row;
    const sendToken = () =>
      respond(response, tokenResponse(entityId, body, { organization_id }, { gen }), cookies(entityId, secret));
    if (row.seen_day === day()) sendToken();
    else execute(response, NOTE_DAY, [day(), browserId, entityId], sendToken);
  });
}

/** @param {any} body @param {Response} response */
function newCustomer(body, response) {
  const { organization_id } = body;
  const [entityId, browserId] = [uuidv7(), uuidv7()];
  const { secret, secretHash } = newSecret(browserId);
  const today = day();
  const statements = /** @type {[string, any[]][]} */ ([
    [NEW_CUSTOMER, [entityId, organization_id, today, new Date()]],
    [NEW_BROWSER, [browserId, secretHash]],
    [NEW_LINK, [browserId, entityId, organization_id, browserId, today]],
  ]);
  executeTransaction(response, statements, () => {
    respond(response, tokenResponse(entityId, body, { organization_id }), cookies(entityId, secret));
  });
}

/** @param {Request} request @param {Response} response @param {any} body */
function agentToken(request, response, body) {
  const claims = agentOf(request);
  const { organization_id } = claims;
  const parameters = [body.entity_id, organization_id, ...revocationOf(claims), claims.sub, claims.gen];
  execute(response, CUSTOMER_OF_AGENT, parameters, ([customer]) => {
    if (!customer) throw new Error('ended, or unknown');
    const { sub, client_id, gen, jti } = claims;
    const lineage = { gen: customer.generation, ancestors: [jti], act: { sub, client_id, gen } };
    const fields = { client_id: body.client_id, organization_id };
    respond(response, tokenResponse(body.entity_id, { ...body, organization_id }, fields, lineage));
  });
}

/** @param {Request} request @param {Response} response */
function info(request, response) {
  const access_token = request.headers.authorization?.slice(7) ?? '';
  const claims = verified(access_token);
  execute(response, ENDED, endOf(claims), ([{ ended }]) => {
    if (ended !== 0) throw new Error('ended');
    const { client_id, sub, exp, organization_id } = claims;
    const expires_in = exp - Math.floor(Date.now() / 1000);
    respond(response, { access_token, client_id, entity_id: sub, expires_in, organization_id, token_type: 'Bearer' });
  });
}

const SECRET = sha256('secret-of-the-chat-api-0123456789');

/** @param {Request} request @param {Response} response @param {string} text */
function introspect(request, response, text) {
  const basic = Buffer.from(request.headers.authorization?.slice(6) ?? '', 'base64').toString();
  const secret = sha256(basic.slice(basic.indexOf(':') + 1));
  if (!timingSafeEqual(Buffer.from(secret), Buffer.from(SECRET)))
    throw new Error('wrong secret of the resource server');
  const claims = verified(JSON.parse(text).token);
  execute(response, ENDED, endOf(claims), ([{ ended }]) => {
    respond(response, ended !== 0 ? { active: false } : { active: true, token_type: 'Bearer', ...claims });
  });
}
