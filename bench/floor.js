// @ts-check
/**
 * The floor: a server that gives the same responses as the service, with node:http, mysql2 and node:crypto only. It has
 * no framework, validation, registry, log, limits or deadline, and sends as few statements as correct responses need.
 * `bench/parts.js` measures which way is the cheapest. The floor has no cache and batches no statements. A run measures
 * both servers and reports their ratio.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { agentCalling, customerOfUser, endSessions } from './floor/customers.js';
import {
  AGENT,
  AGENT_IS_VALID,
  agentOf,
  execute,
  executeTransaction,
  NEW_BROWSER,
  VALID,
  validityOf,
} from './floor/database.js';
import { refresh } from './floor/refresh.js';
import { cookies, respond } from './floor/responses.js';
import { day, idleEnd, newSecret, partsOfSecret, sha256, tokenResponse, uuidv7, verified } from './floor/tokens.js';
import { exchange, transfer } from './floor/transfers.js';

const { PORT = '0' } = process.env;

/** Reads each row by a primary or unique key. Sessions that agents began need a second statement and are not measured. */
const RECOGNIZE_CUSTOMER = `
  SELECT browser.secret_hash, session.id, session.customer_id, session.epoch, session.seen_day, session.expires_at,
    customer.generation
  FROM browser JOIN session
    ON session.browser_id = browser.browser_id AND session.organization_id = ? AND session.group_id = ?
  JOIN customer ON customer.entity_id = session.customer_id
  WHERE browser.browser_id = ? AND session.act IS NULL`;
const NOTE_DAY = 'UPDATE session SET seen_day = ?, expires_at = ? WHERE id = ? AND browser_id = ?';
const NEW_CUSTOMER = `INSERT INTO customer
  (entity_id, organization_id, group_id, creator, generation, version, has_user, seen_day, created_at)
  VALUES (?, ?, '', 'browser', ?, 0, 0, ?, ?)`;
const NEW_SESSION = `INSERT INTO session
  (id, kind, customer_id, browser_id, organization_id, group_id, depth, epoch, seen_day, created_at, expires_at)
  VALUES (?, 'own', ?, ?, ?, '', 0, 0, ?, ?, ?)`;
const CUSTOMER_OF_AGENT = `
  SELECT customer.generation FROM customer ${AGENT}
  WHERE customer.entity_id = ? AND customer.organization_id = ? AND customer.erased_at IS NULL
    AND customer.linked_to IS NULL AND ${AGENT_IS_VALID}`;
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
  const { browserId, random, tag } = partsOfSecret(secret);
  const fitting = createHmac('sha256', random).update(entityId).digest('hex').slice(0, tag.length);
  if (!timingSafeEqual(Buffer.from(tag), Buffer.from(fitting))) throw new Error('a pair that was not set together');
  const { organization_id } = body;
  execute(response, RECOGNIZE_CUSTOMER, [organization_id, '', browserId], ([row]) => {
    if (!timingSafeEqual(Buffer.from(row.secret_hash), Buffer.from(sha256(random)))) throw new Error('wrong secret');
    if (row.customer_id !== entityId) throw new Error('the id of another scope, which is not measured');
    if (row.expires_at <= new Date()) throw new Error('the session has expired');
    const session = { gen: Number(row.generation), sid: row.id, ep: row.epoch };
    const sendToken = () =>
      respond(response, tokenResponse(entityId, body, { organization_id }, session), cookies(entityId, secret));
    if (row.seen_day === day()) sendToken();
    else execute(response, NOTE_DAY, [day(), idleEnd(), row.id, browserId], sendToken);
  });
}

/** @param {any} body @param {Response} response */
function newCustomer(body, response) {
  const { organization_id } = body;
  const [entityId, browserId, sid] = [uuidv7(), uuidv7(), uuidv7()];
  const { secret, secretHash } = newSecret(browserId, entityId);
  const [today, now] = [day(), new Date()];
  const gen = now.getTime();
  const steps = /** @type {import('./floor/database.js').Step[]} */ ([
    [NEW_CUSTOMER, [entityId, organization_id, gen, today, now]],
    [NEW_BROWSER, [browserId, secretHash]],
    [NEW_SESSION, [sid, entityId, browserId, organization_id, today, now, idleEnd()]],
  ]);
  executeTransaction(response, steps, () => {
    const session = { gen, sid, ep: 0 };
    respond(response, tokenResponse(entityId, body, { organization_id }, session), cookies(entityId, secret));
  });
}

/** @param {Request} request @param {Response} response @param {any} body */
function agentToken(request, response, body) {
  const claims = agentCalling(request);
  const { organization_id } = claims;
  execute(response, CUSTOMER_OF_AGENT, [...agentOf(claims), body.entity_id, organization_id], ([customer]) => {
    if (!customer) throw new Error('ended, or unknown');
    const { sub, client_id, sid, ep } = claims;
    const session = { gen: Number(customer.generation), act: { sub, sid, ep, client_id } };
    const fields = { client_id: body.client_id, organization_id };
    respond(response, tokenResponse(body.entity_id, { ...body, organization_id }, fields, session));
  });
}

/** @param {Request} request @param {Response} response */
function info(request, response) {
  const access_token = request.headers.authorization?.slice(7) ?? '';
  const claims = verified(access_token);
  execute(response, VALID, validityOf(claims), ([row]) => {
    if (!row) throw new Error('ended');
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
  execute(response, VALID, validityOf(claims), ([row]) => {
    respond(response, row ? { active: true, token_type: 'Bearer', ...claims } : { active: false });
  });
}
